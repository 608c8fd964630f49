# Flags that every translation unit of the project is built with. Contraction is off so that a multiply and an add stay
# two roundings: an fma is written where one is meant (docs/numerics.md).
add_library(tw_flags INTERFACE)
target_compile_options(tw_flags INTERFACE -ffp-contract=off -fno-fast-math -Wall -Wextra -Wpedantic -Wshadow
                                          -Wconversion -Wno-sign-conversion)
target_include_directories(tw_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)

# tw_component(NAME DEPENDS ...): a static library tw_NAME of every *.cc of the calling folder that is not a test, and
# a test program NAME_test of every *_test.cc. Files are found, so adding one touches no list.
function(tw_component name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench|main)\\.cc$")
  string(REPLACE "/" "_" target ${name})
  if(sources)
    add_library(tw_${target} STATIC ${sources})
    target_link_libraries(tw_${target} PUBLIC tw_flags fmt::fmt ${ARG_DEPENDS})
  else()
    add_library(tw_${target} INTERFACE)
    target_link_libraries(tw_${target} INTERFACE tw_flags fmt::fmt ${ARG_DEPENDS})
  endif()
  if(tests)
    add_executable(${target}_test ${tests})
    target_link_libraries(${target}_test PRIVATE tw_${target} GTest::gmock_main)
    add_test(NAME ${target} COMMAND ${target}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
endfunction()
