#pragma once

namespace lockstep::app {

/// lockstep data synth-ocr ...: `argv[0]` is "synth-ocr". Errors: kInvalidArgument for bad options,
/// and as ocr::write_synth().
int make_synth_ocr(int argc, char** argv);

}  // namespace lockstep::app
