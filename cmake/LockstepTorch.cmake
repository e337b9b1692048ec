# libtorch from the distribution, or from -DCMAKE_PREFIX_PATH=. Its flags stay on its own target.
find_package(Torch REQUIRED)
# Debian's TorchConfig sets an ABI flag and warnings through TORCH_CXX_FLAGS; the target carries the rest.
add_library(lockstep_torch INTERFACE)
add_library(lockstep::torch ALIAS lockstep_torch)
set_target_properties(lockstep_torch PROPERTIES EXPORT_NAME torch)
target_include_directories(lockstep_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(lockstep_torch INTERFACE ${TORCH_LIBRARIES})
set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS lockstep_torch)
