find_package(fmt 9 REQUIRED)
find_package(Threads REQUIRED)
find_package(GTest 1.12 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.42)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc>=2.6)

find_program(CCACHE ccache)
if(CCACHE)
  # A precompiled header is a file the cache cannot look into: its defines and dates do not count (ccache's manual).
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
