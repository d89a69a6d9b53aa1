# The barrier without a promise: src/api/barrier.c under other names, with what the promise costs left out (src/base/promised.h). The
# rest of the library is as it is, so that all of them work on one comm. Not in any product: the measuring programs have them in themselves.
set(without "")
foreach(what IN ITEMS nothing=0 fingerprint=1 journal=2 verdict=4 alive=8 all=15)
  string(REPLACE "=" ";" what ${what})
  list(GET what 0 name)
  list(GET what 1 bits)
  set(target perf_without_${name})
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/src/api/barrier.c)
  target_link_libraries(${target} PRIVATE tutti_flags)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${target} PRIVATE TUTTI_WITHOUT=${bits}
    tutti_barrier=promised_without_${name} tutti_barrier_at=promised_without_${name}_at)
  target_compile_options(${target} PRIVATE -include ${PROJECT_SOURCE_DIR}/src/api/visible.h)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden TUTTI_VARIANT ON)
  list(APPEND without $<TARGET_OBJECTS:${target}>)
endforeach()
