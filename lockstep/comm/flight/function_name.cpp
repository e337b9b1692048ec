#include "lockstep/comm/flight/function_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace lockstep {
namespace {

/// Without what is in brackets: arguments of functions and of templates.
std::string without_arguments(std::string_view text) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  constexpr std::string_view kOperator = "operator";
  std::string rest;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view here = text.substr(i);
    if (here.starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
    } else if (depth == 0 && here.starts_with(kOperator)) {
      const size_t arguments = here.find('(', kOperator.size() + 1);  // operator() has two pairs
      rest += here.substr(0, arguments);
      i += std::min(arguments, here.size()) - 1;
    } else if (text[i] == '(' || text[i] == '<') {
      ++depth;
    } else if (text[i] == ')' || text[i] == '>') {
      --depth;
    } else if (depth == 0) {
      rest += text[i];
    }
  }
  return rest;
}

}  // namespace

std::string function_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !demangled) return symbol.substr(0, symbol.find('@'));  // without its version
  std::string name = without_arguments(demangled.get());
  // What is left of "T f<T>(int) const [clone .cold]" is "T f const [clone .cold]".
  for (const std::string_view tail : {" [clone", " const"}) name = name.substr(0, name.find(tail));
  const size_t space = name.rfind(' ', name.find("operator"));
  return space == std::string::npos ? name : name.substr(space + 1);
}

}  // namespace lockstep
