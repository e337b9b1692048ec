# Each layer has a folder to itself, <build>/lockstep_headers/NAME, with links to its own headers. A
# target looks into the folders of the layers that it links. So a source that includes the header of
# any other layer does not compile. scripts/layers.py reads the layer of a header from these folders.
#
# A header belongs to the layer that names it (HEADERS, PUBLIC_HEADERS), else to the layer that has
# the source beside it, else to the only layer of its folder or of the nearest folder above. A
# header has no layer if its part is left out.

# The folder of the layer NAME.
function(lockstep_header_folder name result)
  set(${result} ${PROJECT_BINARY_DIR}/lockstep_headers/${name} PARENT_SCOPE)
endfunction()

# Makes all folders anew. Call it after the last layer.
function(lockstep_link_headers)
  get_property(layers GLOBAL PROPERTY LOCKSTEP_LAYERS)
  foreach(layer ${layers})
    get_target_property(folder ${layer} SOURCE_DIR)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    list(APPEND layers_of_${folder} ${layer})
    lockstep_named_headers(${layer} named beside)
    foreach(header ${named})
      set(owner_of_${header} ${layer})
    endforeach()
    foreach(header ${beside})
      if(NOT DEFINED owner_of_${header})
        set(owner_of_${header} ${layer})
      endif()
    endforeach()
  endforeach()
  file(REMOVE_RECURSE ${PROJECT_BINARY_DIR}/lockstep_headers)
  # A header that is new or gone configures again.
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/include/lockstep/*.h ${PROJECT_SOURCE_DIR}/lockstep/*.h)
  foreach(header ${headers})
    set(owners ${owner_of_${header}})
    cmake_path(GET header PARENT_PATH folder)
    while(NOT owners AND folder MATCHES /)
      set(owners ${layers_of_${folder}})
      cmake_path(GET folder PARENT_PATH folder)
    endwhile()
    list(LENGTH owners count)
    if(count EQUAL 1)
      lockstep_link_header(${owners} ${header})
    endif()
  endforeach()
  # Programs, tests and examples include their own headers from the root.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lockstep_headers/programs)
  foreach(folder apps bench examples tests)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/lockstep_headers/programs/${folder} SYMBOLIC)
  endforeach()
endfunction()

# Of the sources of `layer`: headers that its list names, and those that would lie beside a source.
function(lockstep_named_headers layer named beside)
  get_target_property(sources ${layer} SOURCES)
  get_target_property(folder ${layer} SOURCE_DIR)
  set(headers_named)
  set(headers_beside)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(source MATCHES "\\.h$")
      list(APPEND headers_named ${source})
    else()
      cmake_path(REPLACE_EXTENSION source LAST_ONLY .h)
      list(APPEND headers_beside ${source})
    endif()
  endforeach()
  set(${named} ${headers_named} PARENT_SCOPE)
  set(${beside} ${headers_beside} PARENT_SCOPE)
endfunction()

function(lockstep_link_header layer header)
  string(REGEX REPLACE "^lockstep_" "" name ${layer})
  string(REGEX REPLACE "^include/" "" place ${header})
  lockstep_header_folder(${name} top)
  cmake_path(GET place PARENT_PATH folder)
  file(MAKE_DIRECTORY ${top}/${folder})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${header} ${top}/${place} SYMBOLIC)
endfunction()
