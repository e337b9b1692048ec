#include "lockstep/base/options.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

struct Request {
  bool follow = false, help = false;
  std::string log_dir;
};

std::vector<Option<Request>> options() {
  return {
      {"follow", 'f', OptionKind::kFlag, "", "go on", set_flag<&Request::follow>},
      {"log_dir", 'd', OptionKind::kValue, "DIR", "where", set_text<&Request::log_dir>},
      {"mca", 0, OptionKind::kPair, "NAME VALUE", "", set_text<&Request::log_dir>},
      help_option<Request>(),
  };
}

Words read(const Words& words, Request& request) {
  return read_request(words, options(), "lockstep verb", request);
}

std::string refusal_of(const Words& words) {
  try {
    Request request;
    refuse_rest(read(words, request), names_of(options()), "lockstep verb");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Options, EverySpellingOfAValueIsRead) {
  const Words spellings[] = {
      {"--log_dir", "a b"}, {"--log-dir=a b"}, {"-log_dir", "a b"}, {"-log-dir=a b"},
      {"-d", "a b"},        {"-da b"},         {"-d=a b"}};
  for (const Words& words : spellings) {
    Request request;
    EXPECT_TRUE(read(words, request).empty()) << words[0];
    EXPECT_EQ(request.log_dir, "a b") << words[0];
  }
}

TEST(Options, TheLastOfTwoValuesCounts) {
  Request request;
  read({"--log_dir", "a", "-d", "b"}, request);
  EXPECT_EQ(request.log_dir, "b");
}

TEST(Options, ANameOfAFileIsNotEmpty) {
  const std::vector<Option<Request>> path = {
      {"output", 'o', OptionKind::kValue, "FILE", "where", set_path<&Request::log_dir>}};
  Request request;
  read_request({"-o", "a"}, path, "lockstep verb", request);
  EXPECT_EQ(request.log_dir, "a");
  try {
    read_request({"--output="}, path, "lockstep verb", request);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(std::string(error.what()), "--output: the name is empty");
  }
}

TEST(Options, OtherWordsMayStandBetweenThem) {
  Request request;
  EXPECT_EQ(read({"one", "-f", "two", "--mca", "x", "y", "--", "--log_dir"}, request),
            (Words{"one", "two", "--log_dir"}));
  EXPECT_TRUE(request.follow);
  EXPECT_EQ(request.log_dir, "");
}

TEST(Options, ValuesAreCheckedByTheirBoundsAndNames) {
  struct Numbers {
    int ranks = 2;
    std::vector<std::string> files;
    bool help = false;
  };
  const std::vector<Option<Numbers>> table = {
      {"ranks", 'n', OptionKind::kValue, "N", "", set_whole<&Numbers::ranks, 1, 8>},
      {"files", 0, OptionKind::kWords, "FILE", "",
       [](Numbers& numbers, const std::string& value, const std::string&) {
         numbers.files.push_back(value);
       }},
      help_option<Numbers>()};
  Numbers numbers;
  read_only_options({"--files", "a", "b", "-n", "8", "--files=c", "d"}, table, "verb", numbers);
  EXPECT_EQ(numbers.ranks, 8);
  EXPECT_EQ(numbers.files, (Words{"a", "b", "c", "d"}));
  const auto refusal = [&](const Words& words) -> std::string {
    try {
      read_only_options(words, table, "verb", numbers);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({"-n", "9"}), "-n: '9' is not a whole number from 1 to 8");
  EXPECT_EQ(refusal({"-n", "2", "c"}),
            "verb: unexpected word 'c' (there are: --ranks, --files, --help)");
  EXPECT_EQ(refusal({"c", "--help"}), "") << "--help is printed whatever else there is";
  EXPECT_EQ(one_of({"own", "user"}, "own", "--memory"), "own");
  try {
    one_of({"own", "user"}, "usr", "--memory");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--memory: 'usr' is none of own, user, did you mean 'user'?");
  }
}

TEST(Options, OfACommandTheFirstWordEndsThem) {
  const auto names = names_of(options());
  const auto given = read_option_words({"-f", "program", "-f", "--", "x"}, names, "lockstep verb",
                                       OptionsEnd::kAtFirstWord);
  EXPECT_EQ(given.options.size(), 1u);
  EXPECT_EQ(given.rest, (Words{"program", "-f", "--", "x"}));
  const auto dashes =
      read_option_words({"--", "-f"}, names, "lockstep verb", OptionsEnd::kAtFirstWord);
  EXPECT_EQ(dashes.rest, Words{"-f"});
}

TEST(Options, RefusalsNameTheOptionAndTheNearestOne) {
  EXPECT_EQ(refusal_of({"--folow"}),
            "lockstep verb: unknown option '--folow', did you mean '--follow'? (lockstep verb "
            "--help lists them)");
  EXPECT_EQ(
      refusal_of({"-folow"}),
      "lockstep verb: unknown option '-folow', did you mean '--follow'? (lockstep verb --help "
      "lists them)");
  EXPECT_EQ(refusal_of({"-f=1"}), "lockstep verb: -f takes no value");
  EXPECT_EQ(refusal_of({"-="}),
            "lockstep verb: unknown option '-' (lockstep verb --help lists them)");
  EXPECT_EQ(refusal_of({"-x"}),
            "lockstep verb: unknown option '-x' (lockstep verb --help lists them)");
  EXPECT_EQ(refusal_of({"--log_dir"}), "lockstep verb: --log_dir needs a value (DIR)");
  EXPECT_EQ(refusal_of({"-d", "--", "x"}), "lockstep verb: -d needs a value (DIR)");
  EXPECT_EQ(refusal_of({"--mca", "x"}), "lockstep verb: --mca needs two words (NAME VALUE)");
  EXPECT_EQ(refusal_of({"--follow=1"}), "lockstep verb: --follow takes no value");
  EXPECT_EQ(refusal_of({"follow"}),
            "lockstep verb: unexpected word 'follow' (there are: --follow, --log_dir, --mca, "
            "--help), did you mean '--follow'?");
  EXPECT_EQ(refusal_of({"-f", "--help"}), "");
}

TEST(Options, HelpListsThoseThatHaveAText) {
  const HelpGroup group = help_group(OptionGroup<Request>{"All", options()});
  ASSERT_EQ(group.rows.size(), 3u);
  EXPECT_EQ(group.rows[0].left, "-f, --follow");
  EXPECT_EQ(group.rows[1].left, "-d, --log_dir DIR");
  EXPECT_EQ(group.rows[2].left, "-h, --help");
}

struct WithDefaults {
  std::string folder = "runs {}";
  int ranks = 2;
  double share = 0.1;
  std::chrono::milliseconds wait{30'000}, pause{250};
};

TEST(Options, HelpShowsTheDefaultsOfTheRequest) {
  using R = WithDefaults;
  constexpr auto kValue = OptionKind::kValue;
  const OptionGroup<R> options = {
      "",
      {{"folder", 0, kValue, "DIR", "where ({}), not {}", set_text<&R::folder>, shows<&R::folder>},
       {"ranks", 0, kValue, "N", "({})", set_whole<&R::ranks, 1, 9>, shows<&R::ranks>},
       {"share", 0, kValue, "X", "({})", set_text<&R::folder>, shows<&R::share>},
       {"wait", 0, kValue, "S", "{} and {}", set_text<&R::folder>,
        [](const R& request) {
          return std::vector{default_text(request.wait), default_text(request.pause)};
        }},
       {"host", 0, kValue, "H", "{host} is its name", set_text<&R::folder>}}};
  const HelpGroup group = help_group(options);
  EXPECT_EQ(group.rows[0].text, "where (runs {}), not {}");
  EXPECT_EQ(group.rows[1].text, "(2)");
  EXPECT_EQ(group.rows[2].text, "(0.1)");
  EXPECT_EQ(group.rows[3].text, "30 and 0.25");
  EXPECT_EQ(group.rows[4].text, "{host} is its name");
  EXPECT_THROW(help_with("no place", {"2"}), Error);
}

}  // namespace
}  // namespace lockstep
