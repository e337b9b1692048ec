// Pango keeps a Fontconfig pattern once per process and never releases it.
// NOLINTNEXTLINE(bugprone-reserved-identifier): LeakSanitizer calls this name
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfontconfig\n";
}
