#pragma once
// The program behind train, eval, plan, export and predict, and those of its verbs that have files
// of their own.

#include <string>
#include <vector>

namespace lockstep::inline internal {

/// Gets the words behind the verb, and the verb as the user typed it. Returns the exit status.
using VerbCommand = int (*)(const std::vector<std::string>& words, const std::string& verb);

/// See train_main(). Without `predict` the program has no --predict.
int command_line_main(int argc, char** argv, VerbCommand predict);

/// `lockstep plan`. Errors: kInvalidArgument, those of load_config().
int run_plan_command(const std::vector<std::string>& words, const std::string& verb);

/// `lockstep export`: a trained network as a file for other programs. Errors: kInvalidArgument,
/// those of load_plugins(), load_config(), load_weights() and save_onnx().
int run_export_command(const std::vector<std::string>& words, const std::string& verb);

/// `lockstep predict`, of the layer `train` alone. One process of a run, alone or under any
/// launcher that World::join() detects. Errors: kInvalidArgument, those of load_plugins(),
/// plan_prediction() and run_prediction().
int run_predict_command(const std::vector<std::string>& words, const std::string& verb);

}  // namespace lockstep::inline internal
