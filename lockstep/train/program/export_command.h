#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// `lockstep export`: a trained network as a file for other programs. `words` are those behind the
/// verb. Returns the exit status. Errors: kInvalidArgument, those of load_plugins(), load_config(),
/// load_weights() and save_onnx().
int run_export_command(const std::vector<std::string>& words, const std::string& verb);

}  // namespace lockstep
