# Which libtorch: -DLOCKSTEP_TORCH=
#   a folder      a libtorch archive, the package torch of a Python, or a virtual environment with it
#   a Python      its package torch
#   a version     what `TORCH=VERSION scripts/setup.sh run` has put below build/torch
# Empty: Debian's, or what CMAKE_PREFIX_PATH has.
set(LOCKSTEP_TORCH "" CACHE STRING "libtorch: a folder, a Python or a version; empty: the system's")

# Of a folder: where its TorchConfig.cmake is, or "".
function(lockstep_torch_config folder result)
  file(GLOB configs
    ${folder}/share/cmake/Torch/TorchConfig.cmake ${folder}/torch/share/cmake/Torch/TorchConfig.cmake
    ${folder}/lib/python*/site-packages/torch/share/cmake/Torch/TorchConfig.cmake)
  set(${result} "" PARENT_SCOPE)
  if(configs)
    list(GET configs 0 config)
    cmake_path(GET config PARENT_PATH folder)
    set(${result} ${folder} PARENT_SCOPE)
  endif()
endfunction()

# The folder of a Python's package torch; finding it loads nothing of it.
function(lockstep_torch_of_python python result)
  execute_process(COMMAND ${python} -c
    "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder ERROR_VARIABLE error RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(code OR NOT folder)
    message(FATAL_ERROR "LOCKSTEP_TORCH: ${python} has no package torch: ${python} -m pip install torch")
  endif()
  set(${result} ${folder} PARENT_SCOPE)
endfunction()

# Sets Torch_DIR, by which find_package(Torch) goes.
function(lockstep_choose_torch)
  set(choice ${LOCKSTEP_TORCH})
  if(choice MATCHES "^[0-9]+\\.[0-9]+(\\.[0-9]+)?$")
    set(folder ${PROJECT_SOURCE_DIR}/build/torch/${choice})
    if(NOT EXISTS ${folder})
      message(FATAL_ERROR "LOCKSTEP_TORCH: ${folder} is not there: TORCH=${choice} scripts/setup.sh run makes it")
    endif()
  elseif(IS_DIRECTORY "${choice}")
    set(folder ${choice})
  else()
    find_program(python ${choice} NO_CACHE)
    if(NOT python)
      message(FATAL_ERROR "LOCKSTEP_TORCH is '${choice}': a folder with libtorch, a Python with the package torch, or a version such as 2.13.0")
    endif()
    lockstep_torch_of_python(${python} folder)
  endif()
  lockstep_torch_config(${folder} config)
  if(NOT config)
    message(FATAL_ERROR "LOCKSTEP_TORCH: ${folder} has no share/cmake/Torch/TorchConfig.cmake: neither a libtorch archive nor a package torch")
  endif()
  set(Torch_DIR ${config} CACHE PATH "Where TorchConfig.cmake is" FORCE)
endfunction()

# Of one that was found: an error where Lockstep cannot be built with it.
function(lockstep_check_torch)
  if(Torch_VERSION VERSION_LESS 1.13 OR Torch_VERSION VERSION_GREATER_EQUAL 3)
    message(FATAL_ERROR "libtorch ${Torch_VERSION} of ${Torch_DIR}: Lockstep takes 1.13 to 2.x; -DLOCKSTEP_TORCH= names another")
  endif()
  if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    message(FATAL_ERROR "libtorch ${Torch_VERSION} of ${Torch_DIR} has the C++ ABI of before GCC 5, and the system's libraries the present one: take a package torch of 2.6 or later, or the archive that is called cxx11-abi")
  endif()
endfunction()
