# Options of single files in src/fold/; included by the list that makes the library's target, before
# the target. Folding may neither fuse nor reorder: every instruction set gives the same bits. The
# other instruction sets are compiled in on every x86-64 build and chosen by what the machine has;
# on other processors the files compile to an empty table. For a debugger they have lines, but no
# variables: to write those down is nearly half of their compilation.
file(GLOB fold_sources ${CMAKE_CURRENT_LIST_DIR}/*.c)
set(fold_options "-ffp-contract=off;-fno-fast-math;$<$<CONFIG:Debug,RelWithDebInfo>:-g1>")
set_source_files_properties(${fold_sources} PROPERTIES COMPILE_OPTIONS "${fold_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/avx2.c PROPERTIES COMPILE_OPTIONS
    "${fold_options};-mavx2;-mf16c")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/avx512.c PROPERTIES COMPILE_OPTIONS
    "${fold_options};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
endif()
