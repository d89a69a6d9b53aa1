# Runs a program for some tenths of a second and reads what it wrote: CSV with as many fields in
# every line, JSON that parses and has figures, a page that ends and loads nothing. No figure is
# judged. EXTRA: more arguments.
execute_process(COMMAND ${PROGRAM} --quick --ranks 2 ${EXTRA} --csv --json ${OUT}.json
    --html ${OUT}.html
  OUTPUT_VARIABLE csv ERROR_VARIABLE said RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --quick: ${status}\n${said}")
endif()

string(STRIP "${csv}" csv)
string(REPLACE "\n" ";" lines "${csv}")
list(LENGTH lines count)
if(count LESS 2)
  execute_process(COMMAND nproc OUTPUT_VARIABLE cpus OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(cpus EQUAL 1)
    message(STATUS "skipped: it measures nothing where two ranks have one CPU")
    return()
  endif()
  message(FATAL_ERROR "CSV without figures:\n${csv}")
endif()
foreach(line IN LISTS lines)
  string(REGEX MATCHALL "," commas "${line}")
  list(LENGTH commas n)
  if(NOT n EQUAL 14)
    message(FATAL_ERROR "CSV: 15 fields expected: ${line}")
  endif()
endforeach()

file(READ ${OUT}.json json)
string(JSON figures LENGTH "${json}" figures)
math(EXPR rows "${count} - 1")
if(NOT figures EQUAL rows)
  message(FATAL_ERROR "JSON has ${figures} figures, CSV ${rows}")
endif()
string(JSON value GET "${json}" figures 0 value)
if(NOT value GREATER 0)
  message(FATAL_ERROR "JSON: the first figure is ${value}")
endif()

file(READ ${OUT}.html page)
if(NOT page MATCHES "^<!doctype html>.*</html>\n$" OR page MATCHES "(src|href)=|url\\(|@import")
  message(FATAL_ERROR "the page is cut off, or loads something")
endif()

# An unknown option is a mistake, said in a line, and not a measurement.
execute_process(COMMAND ${PROGRAM} --no-such-option OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 2)
  message(FATAL_ERROR "an unknown option gave status ${status}, expected 2")
endif()
