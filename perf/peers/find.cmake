# Which peers there are, and how programs for them are made: used by faults/ (the same faults for
# all) and peers/ (the same operations for all). Sets PERF_HAS_openmpi, _mpich, _lomp, _gloo. A peer
# that is not found is left out; the measuring programs say so.

# A compiler, or a wrapper of one, may be there without the headers and libraries: it is asked to
# make a small program.
function(perf_try peer compiler text)
  if(NOT PERF_HAS_${peer})             # what was not there may have been installed since
    set(works OFF)
    if(compiler)
      set(source ${PROJECT_BINARY_DIR}/perf/try_${peer}.c)
      file(WRITE ${source} "${text}")
      execute_process(COMMAND ${compiler} ${ARGN} -o ${PROJECT_BINARY_DIR}/perf/try_${peer}
          ${source} RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
      string(COMPARE EQUAL "${status}" 0 works)
    endif()
    set(PERF_HAS_${peer} ${works} CACHE INTERNAL "a program for ${peer} can be made")
  endif()
endfunction()

foreach(mpi openmpi mpich)
  find_program(PERF_MPICC_${mpi} mpicc.${mpi})
  perf_try(${mpi} "${PERF_MPICC_${mpi}}"
    "#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n")
endforeach()

# The newest MPIs, from PyPI (mpis.txt). Nothing is downloaded by configuring or building: target
# perf_mpis does that, once a person asks for it, and the folder serves all builds beside it.
set(PERF_MPIS ${PROJECT_BINARY_DIR}/../mpis CACHE PATH "where perf_mpis puts MPIs of PyPI")
get_filename_component(PERF_MPIS_AT ${PERF_MPIS} ABSOLUTE)
set(PERF_HAS_MPIS OFF)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/mpis.txt)
if(EXISTS ${PERF_MPIS_AT}/mpis.txt)
  file(READ ${PERF_MPIS_AT}/mpis.txt there)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/mpis.txt wanted)
  string(COMPARE EQUAL "${there}" "${wanted}" PERF_HAS_MPIS)
endif()

find_program(PERF_CLANG clang)
set(PERF_OMP_PROGRAM "#include <omp.h>\nint main(void) { return omp_get_thread_num(); }\n")
perf_try(lomp "${PERF_CLANG}" "${PERF_OMP_PROGRAM}" -fopenmp=libomp)
find_program(PERF_GCC gcc)
perf_try(gomp "${PERF_GCC}" "${PERF_OMP_PROGRAM}" -fopenmp)

find_path(PERF_GLOO_INCLUDE gloo/allreduce.h)
find_library(PERF_GLOO_LIBRARY gloo)
include(CheckLanguage)
set(PERF_HAS_gloo OFF)
if(PERF_GLOO_INCLUDE AND PERF_GLOO_LIBRARY)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    set(PERF_HAS_gloo ON)
  endif()
endif()

# <build>/perf/ranks/<name>, made by a compiler that is not CMake's: target perf_<name>. ASKED: not
# by `all`, and not installed.
set(PERF_RANKS ${PROJECT_BINARY_DIR}/perf/ranks)
set(PERF_RANKS_INSTALLED ${CMAKE_INSTALL_LIBEXECDIR}/tutti/ranks)
function(perf_made_by compiler name)
  cmake_parse_arguments(PARSE_ARGV 2 made "ASKED" "" "SOURCES;LIBRARIES;FLAGS;LINK;AFTER")
  set(files ${made_LIBRARIES})
  list(TRANSFORM files REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  add_custom_command(OUTPUT ${PERF_RANKS}/${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PERF_RANKS}
    COMMAND ${compiler} -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra
    -I${PROJECT_SOURCE_DIR}/perf ${made_FLAGS}
            -MD -MF ${CMAKE_CURRENT_BINARY_DIR}/${name}.d -o ${PERF_RANKS}/${name} ${made_SOURCES}
            ${files} ${made_LINK} -pthread
    DEPENDS ${made_SOURCES} ${made_LIBRARIES} ${made_AFTER} DEPFILE
    ${CMAKE_CURRENT_BINARY_DIR}/${name}.d VERBATIM)
  if(made_ASKED)
    add_custom_target(perf_${name} DEPENDS ${PERF_RANKS}/${name})
    return()
  endif()
  add_custom_target(perf_${name} ALL DEPENDS ${PERF_RANKS}/${name})
  install(PROGRAMS ${PERF_RANKS}/${name} DESTINATION ${PERF_RANKS_INSTALLED})
endfunction()

function(perf_made_for_gloo name)
  cmake_parse_arguments(PARSE_ARGV 1 made "" "" "SOURCES;LIBRARIES")
  add_executable(perf_${name} ${made_SOURCES})
  set_target_properties(perf_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY
      ${PERF_RANKS} CXX_STANDARD 14 LINKER_LANGUAGE CXX)
  target_include_directories(perf_${name} PRIVATE ${PROJECT_SOURCE_DIR}/perf)
  target_include_directories(perf_${name} SYSTEM PRIVATE ${PERF_GLOO_INCLUDE})
  target_compile_definitions(perf_${name} PRIVATE _GNU_SOURCE)
  target_link_libraries(perf_${name} PRIVATE ${made_LIBRARIES} ${PERF_GLOO_LIBRARY}
      Threads::Threads)
  install(TARGETS perf_${name} RUNTIME DESTINATION ${PERF_RANKS_INSTALLED})
endfunction()
