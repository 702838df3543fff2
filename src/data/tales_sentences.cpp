// The sentences of the tales. A sentence ends with the rule of what may follow it; alternatives of one rule begin alike
// up to a letter, so that each text has one derivation.
#include "tales.h"

namespace normlab {
namespace {

const std::vector<Rule> kBeginnings{
    {"tale", {"{opening} {custom} {trouble}\n"}},
    {"opening",
     {
         "Once {a trait} {new trade} named {new name} lived {side} the {look} {new place}.",
         "There was {a trait} {new trade} named {new name} who lived {side} the {look} {new place}.",
         "Long ago {new name}, {a trait} {new trade}, had a hut {side} the {look} {new place}.",
         "In a house {side} the {look} {new place} lived {a trait} {new trade} named {new name}.",
         "Far away, {side} the {look} {new place}, lived {new name} the {trait} {new trade}.",
         "Do you know {new name}, the {trait} {new trade} from the {look} {new place}?",
         "Many years ago {a trait} {new trade} named {new name} came to the {look} {new place}.",
         "Just {side} the {look} {new place} {new name} the {trait} {new trade} built a house.",
     }},
    {"custom",
     {
         "{He} had {a colour} {garment}, {a colour} {pet} and no {riches}.",
         "{He} loved {treat} and {joy}.",
         "{He} could {skill} and {art}.",
         "{He} wished to {wish}.",
         "{He} lived on {treat} and {taste} {dish}s.",
         "{He} talked to {his} {pet} about {dream}.",
         "{He} dreamed of {number} {dream} every night.",
         "{He} wore {a colour} {garment} and always {virtue}.",
         "{He} never {vice} and always {virtue}.",
         "{He} rose early, {chore} and {nightly}.",
         "{He} knew all about {treat} and {dream}.",
         "{He} kept {number} {pet}s in the {corner}.",
     }},
    {"trouble",
     {
         "One {weather} {daytime} {he} lost {his} {fine} {stuff} {new thing}. {search}",
         "One {weather} {daytime} {he} dropped {his} {fine} {new thing} in the {dark} {wild}. {search}",
         "One {weather} {daytime} {he} found {a kind} {new animal} in {a trap}. {rescue}",
         "One {weather} {daytime} {he} met {a kind} {new animal} on the way to the {goal}. {plea}",
         "One {weather} {daytime} {he} heard {a kind} {new animal} that {cried} in the {dark} {wild}. {rescue}",
         "One {weather} {daytime} {he} took {his} {fine} {new thing} to the {goal}. {bargain}",
         "One {weather} {daytime} {he} dug up {a fine} {stuff} {new thing}. {magic}",
         "In {month} {a kind} {new animal} knocked at the door. {plea}",
         "In {month} {a kind} {new animal} moved into the {corner}. {plea}",
         "That {month} {a odd} {stranger} gave {him} {a fine} {stuff} {new thing}. {magic}",
         "But in {month} {a odd} {stranger} stole {his} {fine} {new thing}. {search}",
         "Then, in {month}, {his} {fine} {new thing} was gone. {search}",
     }},
};

const std::vector<Rule> kLost{
    {"search",
     {
         "{He} looked under the {furniture} and behind the {furniture}. {helper}",
         "{He} asked the {person} and the {person}, but nobody had seen it. {helper}",
         "{He} sat down on {a seat} and wept. {helper}",
         "{He} searched the {crowd} for {number} days. {helper}",
         "{He} offered {number} {wares} to the finder. {helper}",
         "{He} could no longer {skill} for sorrow. {helper}",
         "{He} begged the {trait} {person} for help. {helper}",
         "{He} lay in the {corner} and stared at the ceiling. {helper}",
     }},
    {"helper",
     {
         "Then {a kind} {new animal} came out of the {wild}. {hint}",
         "At last {a kind} {new animal} took pity on {him}. {hint}",
         "Suddenly {a kind} {new animal} {cried} behind {him}. {hint}",
         "But {a kind} {new animal} had seen everything. {hint}",
         "Luckily {a kind} {new animal} came by. {hint}",
         "Under the {furniture} sat {a kind} {new animal}. {hint}",
         "From the {wild} came {a kind} {new animal}. {hint}",
         "Only {a kind} {new animal} knew more. {hint}",
     }},
    {"hint",
     {
         "\"Do not cry,\" said the {animal}, \"look {side} the {new hideout}.\" {find}",
         "\"I saw it {side} the {new hideout},\" it {cried}. {find}",
         "\"Give me {a taste} {dish},\" said the {animal}, \"and I will help you.\" {deal}",
         "\"Your {thing} is {side} the {new hideout},\" said the {animal}. {find}",
         "\"Follow me!\" {cried} the {animal}, and ran to the {new hideout}. {find}",
         "\"What are you looking for?\" asked the {animal}. \"For my {thing},\" said {name}. {sniff}",
     }},
    {"deal",
     {
         "{He} ran home, and for {number} {dish}s it pulled the {thing} out of the {new hideout}. {thanks}",
         "{He} agreed, and soon the {thing} lay at {his} feet. {thanks}",
         "{He} had only {a colour} {garment}, but the {animal} took it and fetched the {thing}. {thanks}",
     }},
    {"sniff",
     {
         "It sniffed here and there and found the {thing} {side} the {new hideout}. {thanks}",
         "It ran {number} times around the {new hideout} and came back with the {thing}. {thanks}",
         "It dug {side} the {new hideout} until the {thing} {did}. {thanks}",
     }},
    {"find",
     {
         "And there lay the {thing}! {thanks}",
         "And truly, the {thing} {did} by the {hideout}. {thanks}",
         "Right there the {thing} {did}. {thanks}",
         "Among {number} {wares} {he} found the {thing}. {thanks}",
         "But {a odd} {stranger} was already holding the {thing}. {thief}",
     }},
    {"thief",
     {
         "The {animal} {cried} so loudly that the thief fled. {thanks}",
         "For {number} {wares} {he} got it back. {thanks}",
         "\"That is mine,\" said {name}, and the {thing} {did}. {thanks}",
     }},
    {"thanks",
     {
         "{He} was so happy that {he} {gladly}. {end}",
         "{He} kissed the {animal} on the nose. {end}",
         "{He} thanked the {animal} with {number} {dish}s. {end}",
         "{He} cooked {a taste} {dish} for the {animal}. {end}",
         "{He} carried the {animal} home to its {home}. {end}",
         "{He} made {a colour} {garment} for the {animal}. {end}",
     }},
};

const std::vector<Rule> kKindness{
    {"plea",
     {
         "\"I am hungry,\" said the {animal}. {share}",
         "\"Please give me {a taste} {dish},\" it {cried}. {share}",
         "\"May I sleep in your {new room}?\" asked the {animal}. {shelter}",
         "\"I have lost my way to the {home},\" said the {animal}. {guide}",
         "\"Guess my riddle,\" said the {animal}, \"or give me {a taste} {dish}.\" {riddle}",
         "\"Teach me to {skill},\" said the {animal}. {lesson}",
     }},
    {"share",
     {
         "{He} had only {a taste} {dish}, but {he} gave it away. {reward}",
         "{He} brought {a taste} {dish} and {number} {dish}s. {reward}",
         "{He} cooked {a taste} {dish} for it in the {corner}. {reward}",
     }},
    {"shelter",
     {
         "{He} made a bed of straw in the {room}. {reward}",
         "{He} nodded and brought it {a colour} {garment}. {reward}",
         "{He} cleared the {room} and gave it {a taste} {dish}. {reward}",
     }},
    {"guide",
     {
         "{He} carried it all the way to the {home}. {reward}",
         "{He} asked the {person} and found the {home}. {reward}",
         "{He} walked with it for {number} miles. {reward}",
     }},
    {"riddle",
     {
         "{He} thought for {number} hours and guessed it. {reward}",
         "{He} did not know the answer, so {he} paid. {reward}",
         "{He} asked the {person}, who knew the answer. {reward}",
     }},
    {"lesson",
     {
         "{He} did so for {number} days. {reward}",
         "{He} taught it to {art} as well. {reward}",
     }},
    {"rescue",
     {
         "{He} set it free and carried it to the {home}. {reward}",
         "{He} washed its wounds and gave it {a taste} {dish}. {reward}",
         "{He} said: \"Do not be afraid, my {kind} {animal}.\" {reward}",
         "{He} wrapped it in {a colour} {garment} and took it home. {reward}",
         "{He} sang {number} songs until the {animal} fell asleep. {reward}",
         "{He} took it to the {trait} {person}. {reward}",
     }},
    {"reward",
     {
         "The next {daytime} the {animal} brought {him} {a fine} {stuff} {new thing}. {magic}",
         "In return the {animal} gave {him} {a fine} {stuff} {new thing}. {magic}",
         "\"Take this {fine} {stuff} {new thing},\" said the {animal}. {magic}",
         "From then on the {animal} {chore} for {him}. {end}",
         "Out of thanks the {animal} showed {him} {number} {wares} in its {home}. {end}",
         "After {number} days the {animal} came back with {a fine} {new thing}. {magic}",
     }},
};

const std::vector<Rule> kMagic{
    {"magic",
     {
         "Every {daytime} the {thing} {did} all by itself. {wonder}",
         "Whenever {he} thought of {dream}, the {thing} {did}. {wonder}",
         "It was no common {thing}: it {did} when somebody {vice}. {wonder}",
         "When {he} {gladly}, the {thing} {did}. {wonder}",
         "Soon the {person} and the whole {crowd} knew of it. {wonder}",
         "For {number} days it did nothing, then the {thing} {did}. {wonder}",
     }},
    {"wonder",
     {
         "Then the whole {crowd} had to {dance}. {close}",
         "And {his} {furniture} was covered with {gift}. {close}",
         "Now {he} could {skill} and {art}. {close}",
         "The {trait} {person} offered {number} {wares} for it, but {he} kept it. {close}",
         "But {he} told only the {pet} in the {corner}. {close}",
         "Even {a odd} {stranger} came to see how it {did}. {close}",
         "Once {a odd} {stranger} tried to steal it, but it {did}. {close}",
         "Because of it {number} {wares} came flying through the door. {close}",
     }},
    {"bargain",
     {
         "There {a odd} {stranger} offered {him} {number} {wares} for it. {choice}",
         "At the door {he} met {a odd} {stranger} who wanted it. {choice}",
         "Nobody wanted it but {a stranger} with {a colour} {garment}. {choice}",
         "The {person} gave {number} {wares} for it. {choice}",
     }},
    {"choice",
     {
         "{He} shook {his} head, and the {thing} {did}. {close}",
         "{He} agreed, but the {thing} came back in {month}. {close}",
         "{He} wanted to sell, but then the {thing} {did}. {wonder}",
         "{He} asked for {number} {wares} more. {close}",
         "{He} bought {a colour} {pet} with it. {close}",
     }},
};

const std::vector<Rule> kEndings{
    // With an animal in the tale.
    {"end",
     {
         "From that {daytime} on {name} and the {animal} were friends.",
         "And they lived by the {place} for {years} years.",
         "The {animal} still tells of it in its {home}.",
         "That is how the {trade} found a friend for life.",
         "A {goods} is worth more than {treasure}.",
         "\"A {goods} is never forgotten,\" said {name}.",
         "In {month} they both learned to {skill}.",
     }},
    // With a thing in the tale.
    {"close",
     {
         "So {name} lived by the {place} for {years} years.",
         "And the {trade} never {vice} again.",
         "The {thing} can be seen in the {hall} to this day.",
         "If you pass the {place}, you may still see {him} {dance}.",
         "A {goods} is worth more than {treasure}.",
         "\"A {goods} is worth {number} {wares},\" said {name}.",
         "That is why the {thing} is worth more than {treasure}.",
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
