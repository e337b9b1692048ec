// Pango keeps a Fontconfig pattern once per process and never releases it.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfontconfig\n";
}
