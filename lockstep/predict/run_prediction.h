#pragma once

#include "lockstep/predict/predict_plan.h"
#include "lockstep/world.h"

namespace lockstep {

/// Every picture once, on one of the ranks, read by loader.num_workers threads and computed
/// loader.batch_size at a time where shapes are equal. Into plan.output goes plan.result_file(), a
/// line for each picture in the order of their paths (see class_line() and
/// ocr/predict/result_lines.h). Rank 0 writes lines as they come, into a file with ".partial"
/// behind its name until it is whole. With a detector and plan.draw, each picture goes there with
/// its regions and texts drawn: NAME_det_res.png, or NAME_res.png with both networks. A picture
/// that cannot be used costs a warning and its line. Rank 0 shows progress on a terminal and says
/// at the end what there is. Returns the exit status. Errors: those of the networks' parts;
/// kCorrupt when no picture could be used; kTimeout naming the picture whose rank does not answer.
int run_prediction(const PredictPlan& plan, World world);

}  // namespace lockstep
