# ragfs_library(NAME FOLDER DEPS ...): library ragfs_NAME from FOLDER/*.cc, and NAME_test from FOLDER/*_test.cc.
# New files need no edit here; re-run cmake (CONFIGURE_DEPENDS does it at the next build).

add_library(ragfs_flags INTERFACE)
target_include_directories(ragfs_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(ragfs_flags INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers
                       -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(ragfs_flags INTERFACE -Wthread-safety -Wthread-safety-beta)
  # clang tells of std::stable_sort's own use of get_temporary_buffer in libstdc++ 12.
  target_compile_options(ragfs_flags INTERFACE -Wno-deprecated-declarations)
else()
  # GCC 12 reports std::string's own memcpy at -O3 (its bug 105651).
  target_compile_options(ragfs_flags INTERFACE $<$<CONFIG:Release>:-Wno-restrict>)
endif()
if(RAGFS_TEST_HOOKS)
  target_compile_definitions(ragfs_flags INTERFACE RAGFS_TEST_HOOKS)
endif()
if(RAGFS_SANITIZE)
  target_compile_options(ragfs_flags INTERFACE -fsanitize=${RAGFS_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(ragfs_flags INTERFACE -fsanitize=${RAGFS_SANITIZE})
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # With a sanitizer's calls between them, GCC 12 loses track of what std::optional and <regex> have initialised.
    target_compile_options(ragfs_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(RAGFS_BUILD_FUZZERS)
  # Everything that a fuzzer links reports its coverage and its memory errors.
  target_compile_options(ragfs_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(ragfs_flags INTERFACE -fsanitize=address,undefined)
endif()

find_program(RAGFS_MOLD mold)
if(RAGFS_MOLD)
  target_link_options(ragfs_flags INTERFACE -fuse-ld=mold)
endif()

function(ragfs_library name folder)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_library(ragfs_${name} STATIC ${sources})
    target_link_libraries(ragfs_${name} PUBLIC ragfs_flags ${ARG_DEPS})
  else()
    add_library(ragfs_${name} INTERFACE)
    target_link_libraries(ragfs_${name} INTERFACE ragfs_flags ${ARG_DEPS})
  endif()
  if(tests AND RAGFS_BUILD_TESTS)
    ragfs_test(${name} SOURCES ${tests} DEPS ragfs_${name})
  endif()
endfunction()

# ragfs_test(NAME SOURCES ... DEPS ...): the gtest program NAME_test. ./test finds every program named *_test.
function(ragfs_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ragfs_flags ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  # For tests that read files of the source tree or start the program.
  target_compile_definitions(${name}_test PRIVATE RAGFS_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             RAGFS_PROGRAM="${CMAKE_BINARY_DIR}/ragfs")
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()
