# Options of single files in src/fold/; included by the list that makes the library's target, before the target.
# Folding may neither fuse nor reorder: every instruction set gives the same bits. The other instruction sets are compiled in on
# every x86-64 build and chosen by what the machine has; on other processors the files compile to an empty table.
file(GLOB fold_sources ${CMAKE_CURRENT_LIST_DIR}/*.c)
set_source_files_properties(${fold_sources} PROPERTIES COMPILE_OPTIONS "-ffp-contract=off;-fno-fast-math")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/avx2.c PROPERTIES COMPILE_OPTIONS
    "-ffp-contract=off;-fno-fast-math;-mavx2;-mf16c")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/avx512.c PROPERTIES COMPILE_OPTIONS
    "-ffp-contract=off;-fno-fast-math;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
endif()
