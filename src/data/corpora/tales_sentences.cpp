// The sentences of the tales. A sentence ends with the rule of what may follow it; alternatives of one rule begin alike
// up to a letter, so that each text has one derivation. Sentences are short and full of words to choose, and what is
// remembered comes again soon, so that a model that sees 64 characters loses little.
#include "tales.h"

namespace normlab {
namespace {

const std::vector<Rule> kBeginnings{
    {"tale", {"{opening} {custom} {trouble}\n"}},
    {"opening",
     {
         "Once {a kind} {new trade} named {new name} lived {side} the {look} {new place}.",
         "Long ago {new name} the {kind} {new trade} lived {side} the {look} {new place}.",
         "Near the {look} {new place} lived {a kind} {new trade} named {new name}.",
         "Far away, {side} the {look} {new place}, lived {new name} the {kind} {new trade}.",
         "There was {a kind} {new trade} named {new name} {side} the {look} {new place}.",
         "Do you know {new name}, the {kind} {new trade} from the {look} {new place}?",
     }},
    {"custom",
     {
         "{He} had {a colour} {garment}, {a colour} {pet} and no {riches}.",
         "{He} loved {treat} and {dream}.",
         "{He} could {skill} and {art}.",
         "{He} wished to {wish}.",
         "{He} never {vice} and always {gladly}.",
         "{He} kept {number} {pet}s in the {room}.",
         "{He} dreamed of {number} {dream}.",
         "{He} sold {taste} {dish}s and {colour} {garment}s.",
         "{He} got up, {chore} and {gladly}.",
         "{He} feared {dream} and {a kind} {stranger}.",
     }},
    {"trouble",
     {
         "One {weather} {daytime} {he} lost {his} {fine} {stuff} {new thing}. {search}",
         "One {weather} {daytime} {he} dropped {his} {fine} {new thing} in the {look} {wild}. {search}",
         "One {weather} {daytime} {he} met {a kind} {new animal} in the {look} {wild}. {plea}",
         "One {weather} {daytime} {he} found {a kind} {new animal} in {a trap}. {rescue}",
         "One {weather} {daytime} {he} took {his} {fine} {stuff} {new thing} to the {goal}. {bargain}",
         "One {weather} {daytime} {he} dug up {a fine} {stuff} {new thing}. {magic}",
         "In {month} {a kind} {new animal} {came} into the {room}. {plea}",
         "That {month} {a kind} {stranger} gave {him} {a fine} {stuff} {new thing}. {magic}",
         "But in {month} {a kind} {stranger} stole {his} {fine} {new thing}. {search}",
     }},
};

const std::vector<Rule> kLost{
    {"search",
     {
         "{He} looked {side} the {furniture}. {helper}",
         "{He} asked the {person} and {a kind} {stranger}. {helper}",
         "{He} sat on the {furniture} and {wept} {how}. {helper}",
         "{He} searched for {number} days. {helper}",
         "{He} offered {number} {colour} {wares} for it. {helper}",
         "{He} lay in the {room} and {wept} {how}. {helper}",
     }},
    {"helper",
     {
         "Then {a kind} {new animal} {came} out of the {look} {wild}. {hint}",
         "At last {a kind} {new animal} {cried} {how}. {hint}",
         "But {a kind} {new animal} had seen it all. {hint}",
         "Under the {furniture} sat {a kind} {new animal}. {hint}",
         "From the {look} {wild} {came} {a kind} {new animal}. {hint}",
     }},
    {"hint",
     {
         "\"Look {side} the {new hideout},\" it {cried} {how}. {find}",
         "\"I saw it {side} the {new hideout},\" it {cried} {how}. {find}",
         "It ate {a taste} {dish} and ran to the {new hideout}. {find}",
         "It dug {side} the {new hideout} and {cried} {how}. {find}",
         "It ran {number} times around the {new hideout}. {find}",
     }},
    {"find",
     {
         "And there lay the {thing}! {thanks}",
         "And the {thing} {did} {how} by the {hideout}. {thanks}",
         "Right there the {thing} {did} {how}. {thanks}",
         "Among {number} {colour} {wares} lay the {thing}. {thanks}",
     }},
    {"thanks",
     {
         "{He} kissed the {kind} {animal}. {end}",
         "{He} gave the {kind} {animal} {a taste} {dish}. {end}",
         "{He} made {a colour} {garment} for the {animal}. {end}",
         "{He} took the {kind} {animal} home to its {home}. {end}",
         "{He} sang, and the {kind} {animal} {cried} {how}. {end}",
     }},
};

const std::vector<Rule> kKindness{
    {"plea",
     {
         "\"Give me {a taste} {dish},\" it {cried} {how}. {answer}",
         "\"May I sleep in the {room}?\" it {cried} {how}. {answer}",
         "\"Teach me to {skill},\" it {cried} {how}. {answer}",
         "\"I lost my {home},\" it {cried} {how}. {answer}",
         "\"Who will {skill} with me?\" it {cried} {how}. {answer}",
     }},
    {"answer",
     {
         "{He} gave the {animal} {a taste} {dish}. {reward}",
         "{He} did so {how} for {number} days. {reward}",
         "{He} took the {animal} to the {room}. {reward}",
         "{He} nodded {how} and brought {a colour} {garment}. {reward}",
     }},
    {"rescue",
     {
         "{He} set it free and gave it {a taste} {dish}. {reward}",
         "{He} wrapped it {how} in {a colour} {garment}. {reward}",
         "{He} took the {animal} {how} to its {home}. {reward}",
         "{He} sang {how} until the {animal} {cried}. {reward}",
     }},
    {"reward",
     {
         "Next {daytime} it brought {him} {a fine} {stuff} {new thing}. {magic}",
         "So the {kind} {animal} gave {him} {a fine} {stuff} {new thing}. {magic}",
         "\"Take this {fine} {stuff} {new thing},\" it {cried} {how}. {magic}",
         "From then on the {kind} {animal} {chore} for {him}. {end}",
         "And the {animal} showed {him} {number} {colour} {wares} in its {home}. {end}",
     }},
};

const std::vector<Rule> kMagic{
    {"magic",
     {
         "Every {daytime} the {thing} {did} {how}. {wonder}",
         "When {he} {gladly}, the {thing} {did} {how}. {wonder}",
         "It {did} {how} when somebody {vice}. {wonder}",
         "After {number} days the {thing} {did} {how}. {wonder}",
         "Soon the {kind} {person} {came} to see it. {wonder}",
     }},
    {"wonder",
     {
         "Then the {kind} {person} had to {skill} {how}. {close}",
         "And the {furniture} was full of {taste} {dish}s. {close}",
         "Now {he} could {skill} and {art}. {close}",
         "But {he} told only the {colour} {pet}. {close}",
         "Even {a kind} {stranger} {gladly} {how}. {close}",
         "So {number} {colour} {wares} {came} through the door. {close}",
     }},
    {"bargain",
     {
         "There {a kind} {stranger} offered {number} {wares} for it. {choice}",
         "The {kind} {person} wanted it for {number} {wares}. {choice}",
         "Nobody wanted it but {a kind} {stranger}. {choice}",
     }},
    {"choice",
     {
         "{He} said no, and the {thing} {did} {how}. {close}",
         "{He} agreed, but the {thing} {came} back {how}. {close}",
         "{He} sold it and bought {a colour} {pet}. {close}",
         "{He} was in doubt, but it {did} {how}. {wonder}",
     }},
};

const std::vector<Rule> kEndings{
    // With an animal in the tale.
    {"end",
     {
         "So {name} and the {kind} {animal} were friends.",
         "And they lived by the {place} for {number} years.",
         "The {animal} still tells of it in its {home}.",
         "That is how the {trade} found {a kind} friend.",
         "A {goods} is worth more than {treasure}.",
         "In {month} they learned to {skill} and {art}.",
     }},
    // With a thing in the tale.
    {"close",
     {
         "So {name} lived by the {place} for {number} years.",
         "And the {trade} never {vice} again.",
         "The {thing} hangs in the {look} {goal} to this day.",
         "If you pass the {place}, you may see {him} {skill}.",
         "A {goods} is worth more than {treasure}.",
         "In {month} the {kind} {person} {gladly} {how}.",
     }},
};

}  // namespace

std::vector<Rule> tale_sentences() {
  std::vector<Rule> rules;
  for (const auto& part : {kBeginnings, kLost, kKindness, kMagic, kEndings})
    rules.insert(rules.end(), part.begin(), part.end());
  return rules;
}

}  // namespace normlab
