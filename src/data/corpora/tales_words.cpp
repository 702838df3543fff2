// The words of the tales. A list that is remembered has beside each word what must agree with it. Short words: their
// letters are soon certain, so that most of a tale's uncertainty lies where a word is chosen.
#include "tales.h"

namespace normlab {
namespace {

const std::vector<Rule> kRemembered{
    {"name/he/him/his",
     {"Otto/he/him/his", "Emil/he/him/his", "Hugo/he/him/his", "Leo/he/him/his", "Max/he/him/his", "Tom/he/him/his",
      "Mila/she/her/her", "Clara/she/her/her", "Ida/she/her/her", "Nora/she/her/her", "Lotte/she/her/her",
      "Rosa/she/her/her"}},
    {"trade",
     {"miller", "weaver", "baker", "potter", "tailor", "hunter", "cook", "sailor", "barber", "poet", "smith", "nurse"}},
    {"place",
     {"mill", "bridge", "hill", "well", "church", "river", "forest", "lake", "castle", "marsh", "gate", "tower"}},
    // A thing, and what it does of its own accord.
    {"thing/did",
     {"bell/rang", "lamp/glowed", "flute/sang", "key/turned", "drum/rolled", "clock/chimed", "candle/shone",
      "feather/danced", "spoon/hopped", "wheel/spun", "kettle/hissed", "broom/flew"}},
    // An animal, its voice, and where it lives.
    {"animal/cried/home",
     {"fox/barked/den", "owl/hooted/tree", "mouse/squeaked/hole", "cat/purred/basket", "goat/bleated/stable",
      "bear/growled/cave", "wolf/howled/lair", "duck/quacked/pond", "bee/buzzed/hive", "pig/grunted/sty",
      "dog/yelped/kennel"}},
    {"hideout", {"haystack", "wagon", "rose", "barrel", "log", "ladder", "stove", "fence"}},
};

const std::vector<Rule> kPeople{
    {"kind", {"kind", "clever", "shy", "brave", "humble", "merry", "lazy", "tall", "poor", "sly", "old", "proud"}},
    {"person", {"priest", "mayor", "judge", "doctor", "teacher", "duke", "queen", "host"}},
    {"stranger", {"merchant", "soldier", "wizard", "pirate", "monk", "giant", "dwarf", "knight"}},
    {"wish",
     {"see the sea", "learn to read", "fly", "own a boat", "travel east", "catch a star", "be a king", "keep bees"}},
    {"skill", {"dance", "whistle", "climb", "juggle", "swim", "count", "paint", "fish", "run", "yodel"}},
    {"art", {"bake", "cook", "sew", "knit", "play chess", "skate", "ride", "mend nets"}},
    {"chore",
     {"fed the hens", "swept", "chopped wood", "milked the cow", "lit the fire", "picked plums", "raked leaves",
      "dug"}},
    {"vice", {"lied", "complained", "boasted", "hurried", "cheated", "swore", "snored", "stole"}},
    {"gladly", {"laughed", "clapped", "jumped", "cheered", "blushed", "sneezed", "waved", "nodded"}},
    {"wept", {"wept", "sighed", "shivered", "waited", "cursed", "thought", "moped", "yawned"}},
    {"came", {"came", "crept", "ran", "rushed", "stepped", "walked", "tumbled", "jumped"}},
    {"how", {"softly", "loudly", "sadly", "gently", "proudly", "sweetly", "wildly", "slowly", "twice", "shyly"}},
};

const std::vector<Rule> kThings{
    {"fine", {"lucky", "magic", "tiny", "precious", "crooked", "heavy", "secret", "strange", "old", "round"}},
    {"stuff", {"silver", "golden", "copper", "wooden", "glass", "iron", "clay", "ivory", "tin", "paper"}},
    {"colour", {"red", "blue", "green", "yellow", "brown", "purple", "orange", "black", "white", "grey"}},
    {"garment", {"hat", "coat", "scarf", "apron", "shirt", "belt", "cap", "jacket", "gown", "vest"}},
    {"pet", {"hen", "kitten", "donkey", "snail", "parrot", "lamb", "dove", "rabbit", "cow", "turtle"}},
    {"riches", {"gold", "land", "money", "shoes", "bed", "teeth", "luck", "time"}},
    {"treat", {"jam", "soup", "bread", "riddles", "songs", "snow", "honey", "cheese"}},
    {"dream", {"ships", "dragons", "swans", "islands", "comets", "kings", "ghosts", "trumpets"}},
    {"taste", {"big", "sweet", "little", "fresh", "sour", "soft", "huge", "burnt", "cold", "plain"}},
    {"dish", {"pear", "apple", "cake", "bun", "pie", "plum", "carrot", "waffle", "turnip", "sausage"}},
    {"number", {"two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve"}},
    {"wares", {"geese", "coins", "pigs", "loaves", "horses", "sheep", "sacks", "cows", "pearls", "kisses"}},
    {"furniture", {"bed", "bench", "table", "carpet", "cupboard", "sofa", "pillow", "oven"}},
    {"goods", {"kind word", "good deed", "warm heart", "true friend", "helping hand", "good name"}},
    {"treasure", {"gold", "a crown", "a castle", "ten coats", "a full purse", "fame"}},
};

const std::vector<Rule> kWorld{
    {"look",
     {"big", "little", "dark", "crooked", "mossy", "windy", "sunny", "quiet", "haunted", "lonely", "famous", "wide"}},
    {"side", {"near", "behind", "beyond", "beside", "above", "below"}},
    {"weather", {"cold", "windy", "rainy", "misty", "warm", "stormy", "mild", "grey", "bright", "dark"}},
    {"daytime", {"morning", "day", "noon", "evening"}},
    {"month",
     {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
      "December"}},
    {"trap", {"net", "snare", "pit", "cage", "ditch", "drain", "sack", "well"}},
    {"wild", {"woods", "fields", "reeds", "hills", "bushes", "grass", "fog", "valley", "moor", "shadows"}},
    {"goal", {"market", "fair", "capital", "school", "ferry", "inn", "abbey", "palace"}},
    {"room", {"attic", "stable", "kitchen", "cellar", "shed", "garden", "loft", "hall", "yard", "barn"}},
};

}  // namespace

std::vector<Rule> tale_words() {
  std::vector<Rule> rules;
  for (const auto& part : {kRemembered, kPeople, kThings, kWorld}) rules.insert(rules.end(), part.begin(), part.end());
  return rules;
}

}  // namespace normlab
