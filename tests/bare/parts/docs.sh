# The commands in README and docs, in their order, from nothing.
part_docs() {
  make_machine
  in_machine root 'STEPS=3 tests/bare/type.sh README.md docs/quick_start.md docs/*/*.md docs/performance.md' 2>&1 | sed -u 's/^/    /' || fail bare "the documents have one type what does not work"
}
