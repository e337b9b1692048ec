#pragma once

namespace lockstep::app {

/// `lockstep data images FOLDER`; `argv` begins with the word `images`. Returns the exit status.
int write_recipe(int argc, char** argv);

}  // namespace lockstep::app
