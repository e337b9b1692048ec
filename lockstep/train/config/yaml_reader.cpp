#include "lockstep/train/config/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::inline internal {
namespace {

/// Builds the tree from the parser's events. Each open mapping or list is a frame; the next value
/// belongs to the innermost one.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const std::string> source, const YamlLimits& limits)
      : source_(std::move(source)), limits_(limits) {}

  const Node& root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(Node::Kind::kNull, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark.line, "an alias stands inside its own anchor");
    pay(tree_bytes(found->second), mark.line);
    add(Node(found->second), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:str") {
      fail(mark.line, fmt::format("the tag '{}' is not known here", tag));
    }
    // UTF-32 can hold more than Unicode, and an escape any character.
    if (!ocr::is_utf8(value)) fail(mark.line, "a character that no text holds");
    Node node = make(Node::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag != "?";
    pay(static_cast<int64_t>(value.size()), mark.line);
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(Node::Kind::kList, mark), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(Node::Kind::kMap, mark), anchor);
  }
  void OnMapEnd() override {
    merge_into(frames_.back());
    close();
  }

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<Node> key;     // read, before its value
    std::set<std::string> keys;  // all so far
    std::optional<Node> merged;  // value of "<<"
  };

  [[noreturn]] void fail(int line, const std::string& why) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}:{}: {}", *source_, line + 1, why));
  }

  void pay(int64_t bytes, int line) {
    spent_ += bytes;
    if (spent_ > limits_.tree_bytes) {
      fail(line, fmt::format("the document grows beyond {} bytes (aliases are copies)",
                             limits_.tree_bytes));
    }
  }

  static int64_t tree_bytes(const Node& node) {
    auto sum = static_cast<int64_t>(sizeof(Node) + node.text.size());
    for (const auto& item : node.items) sum += tree_bytes(item);
    for (const auto& entry : node.entries) {
      sum += static_cast<int64_t>(entry.key.size()) + tree_bytes(entry.value);
    }
    return sum;
  }

  Node make(Node::Kind kind, const YAML::Mark& mark) {
    pay(sizeof(Node), mark.line);
    Node node;
    node.kind = kind;
    node.location = {source_, mark.line + 1};
    return node;
  }

  void open(Node node, YAML::anchor_t anchor) {
    if (static_cast<int>(frames_.size()) >= limits_.depth) {
      fail(node.location.line - 1, fmt::format("nested deeper than {} levels", limits_.depth));
    }
    frames_.push_back({std::move(node), anchor, {}, {}, {}});
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    add(std::move(frame.node), frame.anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      pay(tree_bytes(node), node.location.line - 1);
      anchors_[anchor] = node;
    }
    if (frames_.empty()) {
      root_ = std::move(node);
    } else if (frames_.back().node.kind == Node::Kind::kList) {
      frames_.back().node.items.push_back(std::move(node));
    } else {
      add_to_map(frames_.back(), std::move(node));
    }
  }

  void add_to_map(Frame& frame, Node node) {
    if (!frame.key) {
      check_key(frame, node);
      frame.key = std::move(node);
      return;
    }
    if (frame.key->text == "<<" && !frame.key->quoted) {
      frame.merged = std::move(node);
    } else {
      frame.node.entries.push_back({frame.key->text, frame.key->location, std::move(node)});
    }
    frame.key.reset();
  }

  void check_key(Frame& frame, const Node& key) const {
    const int line = key.location.line - 1;
    if (key.kind != Node::Kind::kScalar) fail(line, "a key must be a plain word");
    if (static_cast<int64_t>(key.text.size()) > limits_.key_bytes) {
      fail(line, fmt::format("a key longer than {} bytes", limits_.key_bytes));
    }
    if (!frame.keys.insert(key.text).second) {
      fail(line, fmt::format("the key '{}' stands twice in this mapping", key.text));
    }
  }

  /// YAML 1.1 merge: keys of the mapping itself take precedence, then those of the first merged
  /// mapping.
  void merge_into(Frame& frame) {
    if (!frame.merged) return;
    const Node merged = std::move(*frame.merged);
    const bool list = merged.kind == Node::Kind::kList;
    for (size_t i = 0; i < (list ? merged.items.size() : 1); ++i) {
      const Node& from = list ? merged.items[i] : merged;
      if (from.kind != Node::Kind::kMap) {
        fail(merged.location.line - 1, "'<<' must name a mapping or a list of mappings");
      }
      for (const auto& entry : from.entries) {
        if (frame.keys.insert(entry.key).second) frame.node.entries.push_back(entry);
      }
    }
  }

  std::shared_ptr<const std::string> source_;
  const YamlLimits limits_;
  int64_t spent_ = 0;
  Node root_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Node> anchors_;
};

bool says_its_encoding(std::string_view text) {
  return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ||
         text.starts_with(std::string_view("\0\0\xFE\xFF", 4));
}

/// Line `number`, from 0; empty past the end.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 0 && !text.empty(); --number) {
    text.remove_prefix(std::min(text.size(), text.find('\n')));
    if (!text.empty()) text.remove_prefix(1);
  }
  return first_line(text);
}

bool is_indented_by_tab(std::string_view line) {
  const auto indentation = line.substr(0, line.find_first_not_of(" \t"));
  return indentation.find('\t') != std::string_view::npos;
}

/// Rejects text that the parser would misread.
void check_encoding(std::string_view text, const std::string& source) {
  if (text.empty() || says_its_encoding(text) || ocr::is_utf8(text)) return;
  int number = 0;
  for (auto rest = text; ocr::is_utf8(first_line(rest)); ++number) {
    rest.remove_prefix(rest.find('\n') + 1);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}:{}: {}", source, number + 1,
                          line_of(text, number).find('\0') == std::string_view::npos
                              ? "not UTF-8"
                              : "a zero byte: no text"));
}

std::string explain(const YAML::Exception& error, std::string_view text) {
  if (!error.mark.is_null() && is_indented_by_tab(line_of(text, error.mark.line))) {
    return "a tab in the indentation, where YAML takes blanks alone";
  }
  return "not YAML: " + error.msg;
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& source, const YamlLimits& limits) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", source, why));
  };
  if (static_cast<int64_t>(text.size()) > limits.text_bytes) {
    fail(fmt::format("longer than {} bytes", limits.text_bytes));
  }
  check_encoding(text, source);
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(std::make_shared<const std::string>(source), limits);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Node();
    Node first = builder.root();
    if (parser.HandleNextDocument(builder)) fail("holds more than one document");
    return first;
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}:{}: {}", source, error.mark.line + 1, explain(error, text)));
  }
}

}  // namespace lockstep::inline internal
