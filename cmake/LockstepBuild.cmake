# How every target of this project is compiled. Users of the installed package get none of this.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# g++ 13 takes no precompiled headers for a source with other options of optimisation, and warns of
# that, which would be an error.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  set(CMAKE_PCH_WARN_INVALID OFF)
endif()

find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE)
  execute_process(COMMAND ${LOCKSTEP_CCACHE} --get-config cache_dir OUTPUT_VARIABLE folder
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(LOCKSTEP_CCACHE_FOLDER "${folder}" CACHE INTERNAL "For tests that build, whose home folder is another")
  # Paths relative to the sources, so that one user's clones and worktrees share objects.
  # With this sloppiness ccache uses precompiled headers too: no file uses __TIME__ or such #defines.
  # It would hash them for each source, and those of libtorch are 500 MB: it keeps the hashes of files,
  # in its folder.
  set(keeps_hashes CCACHE_INODECACHE=1)
  if(DEFINED ENV{CCACHE_READONLY})
    set(keeps_hashes)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
                                  ${keeps_hashes} ${LOCKSTEP_CCACHE})
  # For __FILE__ too: every GoogleTest test contains its file's name, and a path of the clone would
  # prevent sharing.
  add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
endif()
# From 128 MB on g++ collects garbage whenever its memory has doubled: a tenth of its time in a source
# with libtorch. Less often takes at most 150 MB more where headers are precompiled.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
  add_compile_options(--param=ggc-min-expand=200 --param=ggc-min-heapsize=500000)
endif()
find_program(LOCKSTEP_MOLD mold)
if(LOCKSTEP_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
string(COMPARE EQUAL "${LOCKSTEP_SANITIZE}" "thread" LOCKSTEP_TSAN)
if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()

if(LOCKSTEP_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # the layers too: coverage guides the fuzzer
endif()

option(LOCKSTEP_WERROR "Warnings are errors" ON)
# Warnings as errors, and lock annotations with clang.
function(lockstep_options target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror>
    # g++ 12 warns of "text" + std::string at -O2 (its bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
  if(LOCKSTEP_WITH_TORCH)
    lockstep_read_torch_headers(${target})
  endif()
endfunction()

# lockstep_layer(NAME SOURCES a.cpp ... DEPS targets ...): the library lockstep::NAME. PUBLIC_HEADERS
# are those of include/lockstep; HEADERS are internal ones without a source beside them that could be
# another layer's (cmake/LockstepHeaders.cmake). A layer without SOURCES is headers.
# It is installed with LOCKSTEP_COMPONENT, which lockstep/CMakeLists.txt sets.
function(lockstep_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;PUBLIC_HEADERS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(kind STATIC)
  set(scope PUBLIC)
  if(NOT ARG_SOURCES)
    set(kind INTERFACE)
    set(scope INTERFACE)
  endif()
  list(TRANSFORM ARG_PUBLIC_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/lockstep/)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_PUBLIC_HEADERS ${ARG_PUBLIC_HEADERS})
  # Headers of sources alone: a project that links the installed layer needs no such package.
  list(TRANSFORM ARG_PRIVATE_DEPS REPLACE "^nlohmann_json::nlohmann_json$" "$<BUILD_INTERFACE:nlohmann_json::nlohmann_json>")
  add_library(lockstep_${name} ${kind} ${ARG_SOURCES} ${ARG_HEADERS} ${ARG_PUBLIC_HEADERS})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  set_target_properties(lockstep_${name} PROPERTIES EXPORT_NAME ${name})
  lockstep_header_folder(${name} headers)
  target_include_directories(lockstep_${name} ${scope}
    $<BUILD_INTERFACE:${headers}> $<INSTALL_INTERFACE:include>)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS lockstep_${name})
  target_compile_features(lockstep_${name} ${scope} cxx_std_20)
  target_link_libraries(lockstep_${name} ${scope} ${ARG_DEPS})
  set(group ${LOCKSTEP_COMPONENT})
  if(ARG_SOURCES)
    target_link_libraries(lockstep_${name} PRIVATE ${ARG_PRIVATE_DEPS})
    lockstep_options(lockstep_${name})
    get_target_property(links_torch lockstep_${name} LOCKSTEP_LINKS_TORCH)
    if(links_torch AND group STREQUAL "core")
      set(group torch)  # the layers without libtorch can be installed alone
    endif()
  elseif(LOCKSTEP_WITH_TORCH)
    lockstep_note_torch(lockstep_${name} ${ARG_DEPS})
  endif()
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS_${group} lockstep_${name})
endfunction()

# lockstep_app(NAME SOURCES ... DEPS ...): the program bin/NAME, installed with LOCKSTEP_COMPONENT
# if that is set.
function(lockstep_app name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  lockstep_options(${name})
  if(LOCKSTEP_COMPONENT)
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_APPS_${LOCKSTEP_COMPONENT} ${name})
  endif()
endfunction()

# lockstep_light(TARGET): halves the start of a program that runs often and briefly. Loading
# libstdc++, libssl and fmt as shared libraries costs more than starting two processes. Only the C
# library stays shared, for name resolution. The link interface of lockstep::base reads the
# property. Does nothing without libssl.a or libcrypto.a, or with sanitizers.
find_library(LOCKSTEP_SSL_ARCHIVE libssl.a)
find_library(LOCKSTEP_CRYPTO_ARCHIVE libcrypto.a)
function(lockstep_light target)
  if(NOT LOCKSTEP_SSL_ARCHIVE OR NOT LOCKSTEP_CRYPTO_ARCHIVE OR LOCKSTEP_SANITIZE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES LOCKSTEP_LIGHT ON)
  target_link_options(${target} PRIVATE -no-pie -static-libstdc++ -static-libgcc -Wl,--as-needed)
endfunction()

# How tests are compiled, and the headers that most of them include. Tests are short: optimising them
# would take longer than they run. In tests, which are long, UBSan leaves out checks that ASan makes in
# another way: they take a fifth of the compiler's time.
function(lockstep_test_options target)
  target_compile_options(${target} PRIVATE -O0)
  if(CMAKE_CXX_FLAGS MATCHES "_FORTIFY_SOURCE")
    target_compile_options(${target} PRIVATE -U_FORTIFY_SOURCE)  # glibc wants optimisation for it
  endif()
  if(LOCKSTEP_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,vptr,object-size)
  endif()
endfunction()
# As libtorch's headers (cmake/LockstepTorch.cmake), once for the tests without it.
function(lockstep_read_test_headers)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  set(nothing ${PROJECT_BINARY_DIR}/test_headers.cpp)
  file(CONFIGURE OUTPUT ${nothing} CONTENT "")
  add_library(lockstep_test_headers OBJECT ${nothing})
  target_link_libraries(lockstep_test_headers PRIVATE lockstep::base GTest::gtest)
  lockstep_test_options(lockstep_test_headers)
  target_precompile_headers(lockstep_test_headers PRIVATE
    <gtest/gtest.h> <fmt/format.h> <algorithm> <atomic> <chrono> <filesystem> <fstream> <functional>
    <map> <memory> <mutex> <optional> <set> <sstream> <string> <thread> <vector>)
  if(LOCKSTEP_WITH_TORCH)
    # Those of the layers are optimised, and g++ has other macros then.
    lockstep_precompile_torch_headers(lockstep_torch_test_headers <gtest/gtest.h> <fmt/format.h>)
    target_link_libraries(lockstep_torch_test_headers PRIVATE fmt::fmt GTest::gtest)
    lockstep_test_options(lockstep_torch_test_headers)
  endif()
endfunction()

# lockstep_test(NAME SOURCES a_test.cpp ... DEPS ... [TIMEOUT s] [CORES n] [SHARDS n] [RUNS_TORCH]
# [patterns]): one program, one ctest entry. Those that link libtorch have the label "torch".
# RUNS_TORCH: the test links no libtorch, but programs that it starts do.
# CORES: cores that it keeps busy (default 1), for ctest -j.
# SHARDS: number of entries NAME_1 ..., each with a part of the tests, for programs that mostly
# wait. They begin first, and wait side by side.
# Patterns of tests, as for --gtest_filter:
#   ALONE            must not run beside other programs: a separate entry, NAME_alone;
#   WAITS            mostly wait, and the program's others compute: a separate entry, NAME_waits, of
#                    one core. It begins early;
#   LEFT_TO_RELEASE  take long; sanitizers run other tests of the same code;
#   ONE_THREAD       single-threaded, tests and tested code: ThreadSanitizer would find nothing.
#                    AddressSanitizer runs them. With * its build lacks the program.
function(lockstep_test name)
  cmake_parse_arguments(ARG "RUNS_TORCH" "TIMEOUT;CORES;SHARDS" "SOURCES;DEPS;ALONE;WAITS;LEFT_TO_RELEASE;ONE_THREAD" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES LOCKSTEP_IS_TEST ON)
  lockstep_test_options(${name})
  target_link_libraries(${name} PRIVATE lockstep::test_support ${ARG_DEPS} GTest::gtest_main)
  lockstep_options(${name})
  set(label)
  get_target_property(links_torch ${name} LOCKSTEP_LINKS_TORCH)
  if(TARGET lockstep_test_headers AND NOT links_torch)
    target_precompile_headers(${name} REUSE_FROM lockstep_test_headers)
    target_compile_options(${name} PRIVATE -fPIC)  # as the headers; programs have -fPIE
  endif()
  if(links_torch OR ARG_RUNS_TORCH)
    set(label torch)
  endif()
  set(left_out)
  if(LOCKSTEP_SANITIZE)
    list(APPEND left_out ${ARG_LEFT_TO_RELEASE})
  endif()
  if(LOCKSTEP_TSAN)
    # Tests *AsRoot enter namespaces, which requires a single thread: the runtime has another.
    list(APPEND left_out ${ARG_ONE_THREAD} "*AsRoot")
  endif()
  if("*" IN_LIST left_out)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  list(JOIN left_out ":" nowhere)
  list(JOIN ARG_ALONE ":" alone)
  list(JOIN ARG_WAITS ":" waits)
  list(APPEND left_out ${ARG_ALONE} ${ARG_WAITS})
  list(JOIN left_out ":" left_out)
  if(ARG_SHARDS)
    foreach(shard RANGE 1 ${ARG_SHARDS})
      math(EXPR index "${shard} - 1")
      lockstep_test_entry(${name}_${shard} ${name} "-${left_out}" "${ARG_TIMEOUT}" "${ARG_CORES}")
      set_tests_properties(${name}_${shard} PROPERTIES COST 500
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
  else()
    lockstep_test_entry(${name} ${name} "-${left_out}" "${ARG_TIMEOUT}" "${ARG_CORES}")
  endif()
  if(alone)
    lockstep_test_entry(${name}_alone ${name} "${alone}" "${ARG_TIMEOUT}" "${ARG_CORES}")
    set_tests_properties(${name}_alone PROPERTIES RUN_SERIAL ON)
  endif()
  if(waits)
    lockstep_test_entry(${name}_waits ${name} "${waits}-${nowhere}" "${ARG_TIMEOUT}" 1)
    set_tests_properties(${name}_waits PROPERTIES COST 500)
  endif()
endfunction()

# The ctest entry ENTRY: `program` with the tests that `filter` selects. `label` is the caller's.
function(lockstep_test_entry entry program filter timeout cores)
  if(NOT timeout)
    set(timeout 900)  # generous: a hang is found all the same, and a busy machine is no failure
  endif()
  if(NOT cores)
    set(cores 1)
  endif()
  set(arguments)
  if(NOT filter STREQUAL "-")
    set(arguments "--gtest_filter=${filter}")
  endif()
  lockstep_test_command(${entry} ${timeout} ${cores} $<TARGET_FILE:${program}> ${arguments})
  # An entry whose patterns name no test any more would pass for ever.
  set_tests_properties(${entry} PROPERTIES LABELS "${label}" FAIL_REGULAR_EXPRESSION "Running 0 tests")
endfunction()

# The ctest entry ENTRY: this command, in the same surroundings everywhere.
function(lockstep_test_command entry timeout cores)
  add_test(NAME ${entry} COMMAND ${PROJECT_SOURCE_DIR}/tests/support/surroundings.sh ${PROJECT_BINARY_DIR}
    ${PROJECT_SOURCE_DIR} ${ARGN})
  set_tests_properties(${entry} PROPERTIES TIMEOUT ${timeout} PROCESSORS ${cores})
endfunction()
