// What a fact is about, by its relation: the topics of a profile, as data.
const TOPICS = [
  ["Family and people", "MOTHER FATHER PARENT SISTER BROTHER SIBLING CHILD SON DAUGHTER SPOUSE WIFE HUSBAND MARRIED PARTNER FRIEND KNOWS MET NEIGHBOR NEIGHBOUR COUSIN AUNT UNCLE GRAND FAMILY RELATED RELATIVE BOSS COLLEAGUE NAMED DATES ENGAGED"],
  ["Home and places", "LIVES LIVE LIVED RESIDES MOVED MOVES LOCATED STANDS BORN COMES HOME ADDRESS VISITED VISITS TRAVEL TRAVELS STAYS NEAR CITY BERTHS"],
  ["Work and study", "WORK WORKS WORKED JOB EMPLOYED EMPLOYER COMPANY ROLE PROFESSION STUDIES STUDIED STUDENT TEACHES FOUNDED BUILDS BUILT MAKES MADE PROJECT LEADS MANAGES"],
  ["Health", "ALLERGIC HEALTH ILL SICK TAKES DIAGNOSED INJURED HEALED DOCTOR DIET"],
  ["Likes and habits", "LIKES LOVES PREFERS DISLIKES HATES ENJOYS DRINKS EATS FAVORITE FAVOURITE HOBBY PLAYS READS AVOIDS HABIT FEARS"],
  ["Plans and dates", "WILL PLANS PLANNED GOAL WANTS DUE SCHEDULED BIRTHDAY LAUNCH LAUNCHED APPOINTMENT"],
  ["Has", "HAS OWNS OWNED KEEPS DRIVES BOUGHT POSSESSES"],
];
const OTHER = "More";

const TOPIC_OF_WORD = new Map(TOPICS.flatMap(([topic, words]) => words.split(" ").map((word) => [word, topic])));

/** The topic of a relation such as LIVES_IN: that of its first word that has one. */
export function topicOf(relation) {
  const word = relation.toUpperCase().split("_").find((part) => TOPIC_OF_WORD.has(part));
  return word ? TOPIC_OF_WORD.get(word) : OTHER;
}

/** Facts by topic, as `[topic, facts]` in the order of the topics; the rest comes last. */
export function byTopic(facts) {
  const groups = new Map([...TOPICS.map(([topic]) => topic), OTHER].map((topic) => [topic, []]));
  for (const fact of facts) groups.get(topicOf(fact.relation)).push(fact);
  return [...groups].filter(([, some]) => some.length);
}
