option(TW_FUZZ "Build the libFuzzer targets (needs clang; the fuzz preset sets it)" OFF)

# Flags that every translation unit of the project is built with. Contraction is off so that a multiply and an add stay
# two roundings: an fma is written where one is meant (docs/numerics.md). A designated initializer may leave fields out.
# GCC looks for garbage only past 512 MB, which most sources never fill: looking took a tenth of their time.
add_library(tw_flags INTERFACE)
target_compile_options(tw_flags INTERFACE -ffp-contract=off -fno-fast-math -Wall -Wextra -Wpedantic -Wshadow
                                          -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
                                          $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
target_include_directories(tw_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)

# Most code runs once a command, a file or a form of step, and a release compiles it for a short build. Components that say
# HOT, and benchmarks, are compiled for speed.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
add_library(tw_hot_flags INTERFACE)
target_compile_options(tw_hot_flags INTERFACE $<$<CONFIG:Release>:-O3>)

# GCC keeps the include of a compiled header in what the cache sees.
set(tw_pch_flags $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)

# What most sources and most tests read, compiled once for all components: tw_share_precompiled(TARGET tw_headers). GCC
# fails on a source whose optimization is not that of its compiled header.
function(tw_shared_headers name libraries)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE tw_flags fmt::fmt ${libraries})
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_compile_options(${name} PRIVATE ${tw_pch_flags})
endfunction()
set(tw_common_headers <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory>
                      <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
                      <fmt/format.h>)
tw_shared_headers(tw_headers "" ${tw_common_headers})
tw_shared_headers(tw_hot_headers tw_hot_flags ${tw_common_headers})
tw_shared_headers(tw_test_headers GTest::gmock ${tw_common_headers} <gmock/gmock.h> <gtest/gtest.h>)
function(tw_share_precompiled target headers)
  target_precompile_headers(${target} REUSE_FROM ${headers})
  target_compile_options(${target} PRIVATE ${tw_pch_flags})
endfunction()

# What the default target leaves out: `make slow`, `make bench`, `make fuzz`.
add_custom_target(slow_all)
add_custom_target(bench_all)
add_custom_target(fuzz_all)

# tw_component(NAME [HOT] DEPENDS ...): makes of the *.cc files of the calling folder, by their endings,
#   *_test.cc         NAME_test         one GoogleTest program, ctest label unit
#   *_golden_test.cc  NAME_golden_test  one program, label golden: compares with tests/golden or models
#   *_slow_test.cc    NAME_slow_test    one program, label slow: built by slow_all, not part of `make test`
#   X_bench.cc        NAME_X_bench      one Google Benchmark program each, built by bench_all
#   X_fuzz.cc         NAME_X_fuzz       one libFuzzer program each, built by fuzz_all when TW_FUZZ is on
#   *_main.cc         nothing: the folder's CMakeLists.txt makes the program
#   the rest          tw_NAME           a static library
# A / in NAME becomes _ in the names of targets. Files are found, so adding one touches no list. HOT: the library is
# compiled for speed.
function(tw_component name)
  cmake_parse_arguments(ARG "HOT" "" "DEPENDS" ${ARGN})
  string(REPLACE "/" "_" target ${name})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench|main)\\.cc$")
  if(sources)
    add_library(tw_${target} STATIC ${sources})
    target_link_libraries(tw_${target} PUBLIC tw_flags fmt::fmt ${ARG_DEPENDS})
    if(ARG_HOT)
      target_link_libraries(tw_${target} PRIVATE tw_hot_flags)
      tw_share_precompiled(tw_${target} tw_hot_headers)
    else()
      tw_share_precompiled(tw_${target} tw_headers)
    endif()
  else()
    add_library(tw_${target} INTERFACE)
    target_link_libraries(tw_${target} INTERFACE tw_flags fmt::fmt ${ARG_DEPENDS})
  endif()
  tw_component_tests(${name} ${target})
  tw_component_benches(${target})
  if(TW_FUZZ)
    tw_component_fuzzers(${target})
  endif()
endfunction()

function(tw_component_tests name target)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  set(unit_tests ${tests})
  list(FILTER unit_tests EXCLUDE REGEX "_(golden|slow)_test\\.cc$")
  tw_test_program(${target}_test ${target} ${name} unit ${unit_tests})
  foreach(label golden slow)
    set(labelled ${tests})
    list(FILTER labelled INCLUDE REGEX "_${label}_test\\.cc$")
    tw_test_program(${target}_${label}_test ${target} ${name}/${label} ${label} ${labelled})
  endforeach()
  if(TARGET ${target}_slow_test)
    set_target_properties(${target}_slow_test PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(slow_all ${target}_slow_test)
  endif()
endfunction()

# tw_test_program(PROGRAM COMPONENT TEST_NAME LABEL SOURCES...): nothing when there are no sources.
function(tw_test_program program component test_name label)
  if(NOT ARGN)
    return()
  endif()
  add_executable(${program} ${ARGN})
  target_link_libraries(${program} PRIVATE tw_${component} GTest::gmock_main)
  tw_share_precompiled(${program} tw_test_headers)
  add_test(NAME ${test_name} COMMAND ${program} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${test_name} PROPERTIES LABELS ${label} TIMEOUT 900)
endfunction()

function(tw_component_benches target)
  file(GLOB benches CONFIGURE_DEPENDS *_bench.cc)
  if(NOT benches)
    return()
  endif()
  find_package(benchmark 1.7 REQUIRED)
  foreach(source ${benches})
    get_filename_component(stem ${source} NAME_WE)
    add_executable(${target}_${stem} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${target}_${stem} PRIVATE tw_${target} tw_hot_flags benchmark::benchmark_main)
    add_dependencies(bench_all ${target}_${stem})
  endforeach()
endfunction()

function(tw_component_fuzzers target)
  file(GLOB fuzzers CONFIGURE_DEPENDS *_fuzz.cc)
  foreach(source ${fuzzers})
    get_filename_component(stem ${source} NAME_WE)
    add_executable(${target}_${stem} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${target}_${stem} PRIVATE tw_${target})
    target_link_options(${target}_${stem} PRIVATE -fsanitize=fuzzer,address,undefined)
    add_dependencies(fuzz_all ${target}_${stem})
  endforeach()
endfunction()
