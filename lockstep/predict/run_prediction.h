#pragma once

#include "lockstep/predict/predict_plan.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

/// Processes every picture once, on one of the ranks. loader.num_workers threads read, and pictures
/// of equal shape are computed loader.batch_size at a time. plan.result_file() in plan.output gets
/// a line for each picture in the order of their paths (see class_line() and
/// ocr/predict/result_lines.h), and of a classifier plan.table_file() a row (class_table_row()).
/// Rank 0 writes lines as they come, into a file with ".partial" appended to its name until it is
/// complete. With plan.draw each picture goes there with its regions and texts drawn
/// (NAME_det_res.png, or NAME_res.png with both networks), or its class (NAME_cls_res.png). A
/// picture that cannot be used costs a warning and its line. Rank 0 shows progress on a terminal
/// and logs a summary at the end. Returns the exit status.
/// Errors: those of the networks' parts; kCorrupt if no picture could be used; kTimeout naming the
/// picture whose rank does not answer.
int run_prediction(const PredictPlan& plan, World world);

}  // namespace lockstep::inline internal
