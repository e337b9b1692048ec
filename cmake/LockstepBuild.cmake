# How every target of this project is compiled. Users of the installed package do not get these.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE)
  # Paths relative to the sources: clones and worktrees of one user share what they compile.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=1 ${LOCKSTEP_CCACHE})
endif()
find_program(LOCKSTEP_MOLD mold)
if(LOCKSTEP_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()

if(LOCKSTEP_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # the layers too: coverage leads the fuzzer
endif()

# Warnings as errors, and clang's lock annotations where clang compiles.
function(lockstep_options target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
    # g++ 12 warns of "text" + std::string at -O2 (its bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
endfunction()

# lockstep_layer(NAME SOURCES a.cpp ... DEPS targets ...): the library lockstep::NAME.
function(lockstep_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(lockstep_${name} STATIC ${ARG_SOURCES})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  set_target_properties(lockstep_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(lockstep_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  target_compile_features(lockstep_${name} PUBLIC cxx_std_20)
  target_link_libraries(lockstep_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  lockstep_options(lockstep_${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS lockstep_${name})
endfunction()

# lockstep_app(NAME SOURCES ... DEPS ...): the program bin/NAME.
function(lockstep_app name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  lockstep_options(${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_APPS ${name})
endfunction()

# lockstep_light(TARGET): makes a program start in half the time, for those that are started often
# and do little. Loading libstdc++, libcrypto and fmt as shared libraries costs more than starting
# two processes does; only the C library stays shared, for name resolution. The property is read by
# the link interface of lockstep::base. Nothing changes where libcrypto.a is missing or where
# sanitizers are on.
find_library(LOCKSTEP_CRYPTO_ARCHIVE libcrypto.a)
function(lockstep_light target)
  if(NOT LOCKSTEP_CRYPTO_ARCHIVE OR LOCKSTEP_SANITIZE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES LOCKSTEP_LIGHT ON)
  target_link_options(${target} PRIVATE -no-pie -static-libstdc++ -static-libgcc -Wl,--as-needed)
endfunction()

# lockstep_test(NAME SOURCES a_test.cpp ... DEPS ... [TIMEOUT s] [LEFT_TO_RELEASE pattern ...]): one
# program, one ctest entry. LEFT_TO_RELEASE: tests (as --gtest_filter names them) that take long and
# that sanitizer builds leave out, because others that they do run go through the same code.
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LEFT_TO_RELEASE" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)  # generous: a hang is found all the same, a busy machine is no failure
  endif()
  add_executable(${name} ${ARG_SOURCES})
  # Tests run for a moment; optimising them takes longer than they do.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(${name} PRIVATE lockstep::test_support ${ARG_DEPS} GTest::gtest_main)
  lockstep_options(${name})
  set(filter)
  if(LOCKSTEP_SANITIZE AND ARG_LEFT_TO_RELEASE)
    list(JOIN ARG_LEFT_TO_RELEASE ":" patterns)
    set(filter "--gtest_filter=-${patterns}")
  endif()
  add_test(NAME ${name} COMMAND ${name} ${filter})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "LOCKSTEP_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};LOCKSTEP_SOURCE_DIR=${PROJECT_SOURCE_DIR};TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp")
  foreach(source ${ARG_SOURCES})
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_TEST_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endforeach()
endfunction()
