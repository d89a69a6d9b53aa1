# tutti_seed(SOURCES DIR [HOOKS dir] BUGS dir MACRO name HEADER name): builds known bugs, each a
# patch of src/, into copies of the sources.
#
# In the list SOURCES it replaces each file that has a patch by its copy in DIR, which seed.awk
# makes. It adds copies of headers. The caller puts DIR/src before src/ in the search path of
# headers.
function(tutti_seed seeded_list dir)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "HOOKS;BUGS;MACRO;HEADER" "")
  set(hooks "")
  if(arg_HOOKS)
    file(GLOB hooks CONFIGURE_DEPENDS ${arg_HOOKS}/*.patch)
  endif()
  file(GLOB bugs CONFIGURE_DEPENDS ${arg_BUGS}/*.patch)
  set(files "")
  foreach(patch IN LISTS hooks bugs)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${patch})
    file(STRINGS ${patch} heads REGEX "^--- a/")
    foreach(head IN LISTS heads)
      string(REPLACE "--- a/" "" file "${head}")
      list(APPEND files ${file})
      list(APPEND patches_of_${file} ${patch})
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES files)
  set(seeded ${${seeded_list}})
  set(script ${PROJECT_SOURCE_DIR}/test/support/seed.awk)
  foreach(file IN LISTS files)
    set(always ${patches_of_${file}})
    set(chosen ${patches_of_${file}})
    list(FILTER always INCLUDE REGEX "/hooks/")
    list(FILTER chosen EXCLUDE REGEX "/hooks/")
    get_filename_component(folder ${dir}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${dir}/${file}
      COMMAND awk -v of=${file} -v to=${dir}/${file} -v macro=${arg_MACRO} -v header=${arg_HEADER}
      -f ${script}
        ${PROJECT_SOURCE_DIR}/${file} always=1 ${always} always=0 ${chosen}
      DEPENDS ${script} ${PROJECT_SOURCE_DIR}/${file} ${patches_of_${file}}
      COMMENT "Seeding ${file}" VERBATIM)
    list(REMOVE_ITEM seeded ${PROJECT_SOURCE_DIR}/${file})
    list(APPEND seeded ${dir}/${file})
  endforeach()
  set(${seeded_list} ${seeded} PARENT_SCOPE)
endfunction()
