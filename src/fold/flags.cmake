# Options of single files in src/fold/. The list that makes the library's target includes this
# before the target. Folding may neither fuse nor reorder, so that every instruction set gives the
# same bits. Every x86-64 build compiles the other instruction sets; the machine decides which one
# runs. On other processors these files compile to an empty table. For a debugger the files have
# lines, but no variables: to write those takes nearly half of their compilation.
file(GLOB fold_sources ${CMAKE_CURRENT_LIST_DIR}/*.c)
set(fold_options "-ffp-contract=off;-fno-fast-math;$<$<CONFIG:Debug,RelWithDebInfo>:-g1>")
set_source_files_properties(${fold_sources} PROPERTIES COMPILE_OPTIONS "${fold_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/avx2.c PROPERTIES COMPILE_OPTIONS
    "${fold_options};-mavx2;-mf16c")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/avx512.c PROPERTIES COMPILE_OPTIONS
    "${fold_options};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
endif()
