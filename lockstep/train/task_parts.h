#pragma once
// The values of `model.type`, each as one object: what is made of the settings that
// lockstep/train/config/task_settings.h reads, and what its runs log.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

class Task;
enum class PixelForm : uint8_t;
struct CheckedData;
struct DataParts;

/// Its network is made of ModelConfig alone: see make_model().
struct TaskParts {
  /// Loss and metrics. `trains`: not for an evaluation alone.
  std::unique_ptr<Task> (*make)(const Config& config, bool trains);
  /// The data of section `train` or `eval`. `data` gets what is known about them. With
  /// PixelForm::kBytes built-in data sets give bytes, if their transforms allow it.
  std::unique_ptr<const BatchMaker> (*make_batches)(const Config& config, bool training,
                                                    PixelForm form, DataParts& data);
  CheckedData (*check_data)(const Config& config);  ///< For --check.
  /// One line for each section with missing files; `eval` too, if requested and present.
  std::vector<std::string> (*missing_files)(const Config& config, bool with_eval);
  std::string (*data_root)(const Config& config);         ///< For the banner of a training.
  std::string (*evaluation_lines)(const Config& config);  ///< For that of an evaluation.
};

const TaskParts& task_parts(const Config& config);

/// The task that model.type, loss, postprocess and metric select.
std::unique_ptr<Task> make_task(const Config& config, bool trains = true);

}  // namespace lockstep::inline internal
