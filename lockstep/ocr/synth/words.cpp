#include "lockstep/ocr/synth/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace lockstep::ocr {
namespace {

// clang-format off
constexpr auto kWords = std::to_array<std::string_view>({
    "about", "above", "again", "air", "alarm", "album", "angel", "animal", "apple", "april",
    "area", "arm", "army", "art", "ask", "autumn", "baby", "back", "bag", "baker", "ball", "bank",
    "bar", "base", "basket", "bath", "beach", "bean", "bear", "bed", "bell", "best", "big",
    "bike", "bird", "black", "blood", "blue", "board", "boat", "body", "bone", "book", "boot",
    "bottle", "bowl", "box", "boy", "brand", "bread", "break", "brick", "bridge", "bright",
    "bring", "brother", "brown", "brush", "build", "bus", "butter", "button", "cafe", "cake",
    "call", "camera", "camp", "candle", "car", "card", "care", "cash", "castle", "cat", "centre",
    "chair", "change", "cheap", "check", "cheese", "cherry", "chest", "child", "choice", "church",
    "cinema", "circle", "city", "class", "clean", "clear", "clock", "close", "cloud", "club",
    "coast", "coat", "coffee", "coin", "cold", "colour", "come", "cook", "cool", "copper", "copy",
    "corner", "cotton", "cover", "cow", "cream", "cross", "crowd", "cup", "dance", "danger",
    "dark", "data", "day", "dead", "deal", "dear", "deep", "deer", "delay", "desert", "desk",
    "dinner", "dish", "doctor", "dog", "dollar", "door", "double", "down", "dragon", "draw",
    "dream", "dress", "drink", "drive", "drop", "dry", "duck", "dust", "eagle", "early", "earth",
    "east", "easy", "eat", "edge", "egg", "eight", "electric", "empty", "end", "engine", "enter",
    "entrance", "evening", "exit", "express", "eye", "face", "factory", "fair", "fall", "family",
    "farm", "fashion", "fast", "father", "feather", "field", "fight", "film", "final", "find",
    "fire", "first", "fish", "five", "flag", "flat", "floor", "flower", "fly", "food", "foot",
    "forest", "fork", "forward", "four", "fox", "free", "fresh", "friday", "friend", "front",
    "fruit", "full", "future", "game", "garden", "gate", "gift", "girl", "glass", "glove", "goat",
    "gold", "good", "grand", "grass", "great", "green", "grey", "ground", "group", "grow",
    "guard", "guest", "hair", "half", "hall", "hand", "happy", "harbour", "hard", "hat", "head",
    "health", "heart", "heat", "heavy", "hello", "help", "here", "high", "hill", "history",
    "hold", "holiday", "home", "honey", "horse", "hospital", "hot", "hotel", "hour", "house",
    "ice", "idea", "inside", "iron", "island", "jacket", "january", "jazz", "job", "join",
    "juice", "july", "jump", "june", "just", "keep", "key", "kind", "king", "kiss", "kitchen",
    "knife", "ladder", "lady", "lake", "lamp", "land", "large", "last", "late", "laugh", "law",
    "leader", "leaf", "learn", "leather", "left", "lemon", "letter", "level", "library", "light",
    "line", "lion", "list", "little", "live", "local", "lock", "long", "look", "lost", "love",
    "low", "lucky", "lunch", "machine", "magic", "mail", "main", "major", "make", "man", "map",
    "march", "mark", "market", "master", "match", "may", "meal", "measure", "meat", "media",
    "medicine", "meet", "melon", "member", "memory", "menu", "metal", "middle", "milk", "mind",
    "mine", "minute", "mirror", "mobile", "model", "modern", "monday", "money", "monkey", "month",
    "moon", "morning", "mother", "motor", "mountain", "mouse", "movie", "much", "museum", "music",
    "nail", "name", "narrow", "nature", "near", "neck", "needle", "never", "new", "news", "next",
    "nice", "night", "nine", "north", "nose", "note", "number", "nurse", "ocean", "offer",
    "office", "oil", "old", "olive", "one", "onion", "open", "opera", "orange", "order", "other",
    "outside", "oven", "over", "owner", "page", "paint", "palace", "paper", "parcel", "parent",
    "park", "part", "party", "pass", "path", "pay", "pear", "pen", "pencil", "pepper", "person",
    "phone", "photo", "piano", "picture", "pilot", "pink", "place", "plan", "plane", "plant",
    "plastic", "plate", "play", "please", "pocket", "point", "police", "pool", "poor", "post",
    "potato", "power", "press", "price", "print", "prize", "public", "pull", "pump", "queen",
    "quick", "quiet", "rabbit", "race", "radio", "railway", "rain", "read", "ready", "red",
    "repair", "rest", "rice", "rich", "ride", "right", "ring", "river", "road", "rock", "roof",
    "room", "rose", "round", "royal", "rule", "run", "safe", "salad", "sale", "salt", "same",
    "sand", "saturday", "sauce", "save", "school", "science", "screen", "sea", "season", "seat",
    "second", "secret", "sell", "send", "series", "service", "seven", "shade", "shadow", "sharp",
    "sheep", "sheet", "shelf", "ship", "shirt", "shoe", "shop", "short", "show", "shower", "side",
    "sign", "silver", "simple", "sing", "single", "sister", "six", "skin", "sky", "sleep", "slow",
    "small", "smart", "smile", "smoke", "smooth", "snake", "snow", "soap", "sock", "soft", "soil",
    "song", "soup", "south", "space", "special", "speed", "spice", "spoon", "sport", "spring",
    "square", "stage", "stairs", "stamp", "star", "start", "station", "steel", "step", "stock",
    "stone", "stop", "store", "storm", "story", "street", "strong", "student", "studio", "style",
    "sugar", "summer", "sun", "sunday", "super", "supply", "sweet", "swim", "system", "table",
    "tail", "take", "talk", "tall", "taste", "taxi", "tea", "teacher", "team", "ten", "tennis",
    "theatre", "thick", "thin", "think", "thread", "three", "ticket", "tiger", "time", "tin",
    "tired", "today", "toe", "tomato", "top", "touch", "tower", "town", "toy", "track", "trade",
    "train", "travel", "tree", "trip", "truck", "true", "tuesday", "tunnel", "turn", "two",
    "under", "union", "up", "use", "valley", "value", "van", "very", "video", "view", "village",
    "violet", "visit", "voice", "wait", "walk", "wall", "warm", "wash", "watch", "water", "wave",
    "way", "weather", "wednesday", "week", "weight", "west", "wet", "wheel", "white", "wide",
    "wild", "win", "wind", "window", "wine", "winter", "wire", "wolf", "woman", "wonder", "wood",
    "wool", "word", "work", "world", "yard", "year", "yellow", "yes", "young", "zebra", "zero",
    "zone", "zoo",
});
// clang-format on

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kUpperAndDigits = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
constexpr std::string_view kMixed = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";

char upper(char letter) {
  return static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
}

std::string common_word(Dice& dice) {
  std::string word(dice.one_of(kWords));
  const int look = dice.whole(0, 2);
  if (look == 1) word[0] = upper(word[0]);
  if (look == 2) std::transform(word.begin(), word.end(), word.begin(), upper);
  return word;
}

std::string random_string(Dice& dice) {
  const int kind = dice.whole(0, 3);
  const std::string_view letters = kind == 0 ? kDigits : kind == 1 ? kUpperAndDigits : kMixed;
  std::string text(static_cast<size_t>(dice.whole(kind == 0 ? 2 : 3, 8)), ' ');
  for (char& letter : text) letter = dice.one_of(letters);
  return text;
}

}  // namespace

std::string draw_text(Dice& dice) {
  return dice.chance(0.5) ? common_word(dice) : random_string(dice);
}

}  // namespace lockstep::ocr
