// Pango keeps a pattern of Fontconfig's once per process and never gives it back.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfontconfig\n";
}
