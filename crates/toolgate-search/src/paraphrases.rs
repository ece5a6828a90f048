//! Other words for what tools do.
//!
//! People say "ring up a customer" and tools are described as "make a call". For phrases with which
//! people ask, the words of descriptions are added to a query, with less weight than its own words.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    analysis::{TermKind, for_each_term},
    limits::{MAX_QUERY_BYTES, MAX_QUERY_TERMS, cut},
};

/// A query with more words says enough in its own.
const MAX_WORDS: usize = 12;
/// How many words are added to one query.
const MAX_ADDED: usize = 16;
/// Words between the words of a phrase that do not matter: `turn the light off`.
const MAX_GAP: usize = 2;

/// A phrase as stems, and the words that it stands for.
struct Paraphrase {
    rest: Vec<String>,
    means: &'static str,
}

/// The words that the phrases of a query with these `words` stand for, if it is short.
pub(crate) fn meant(text: &str, words: &[String]) -> String {
    if words.len() > MAX_WORDS { String::new() } else { all_meant(text).join(" ") }
}

/// The words that the phrases of a text stand for.
fn all_meant(text: &str) -> Vec<&'static str> {
    /// By the first stem of the phrase.
    static BY_FIRST: LazyLock<HashMap<String, Vec<Paraphrase>>> = LazyLock::new(|| {
        let mut by_first: HashMap<String, Vec<Paraphrase>> = HashMap::new();
        for (phrases, means) in PARAPHRASES {
            for phrase in phrases.split(", ") {
                let mut stems = stems(phrase).into_iter();
                if let Some(first) = stems.next() {
                    let paraphrase = Paraphrase { rest: stems.collect(), means };
                    by_first.entry(first).or_default().push(paraphrase);
                }
            }
        }
        by_first
    });
    let asked = stems(cut(text, MAX_QUERY_BYTES));
    let mut meant: Vec<&'static str> = Vec::new();
    for (place, stem) in asked.iter().enumerate() {
        for paraphrase in BY_FIRST.get(stem).into_iter().flatten() {
            if follows(&asked[place + 1..], &paraphrase.rest) {
                for word in paraphrase.means.split(' ') {
                    if !meant.contains(&word) && meant.len() < MAX_ADDED {
                        meant.push(word);
                    }
                }
            }
        }
    }
    meant
}

/// Whether the words of a phrase follow, with few other words between them.
fn follows(mut asked: &[String], phrase: &[String]) -> bool {
    for stem in phrase {
        let near = asked.iter().take(MAX_GAP + 1);
        let Some(place) = near.into_iter().position(|asked| asked == stem) else { return false };
        asked = &asked[place + 1..];
    }
    true
}

/// All words of a text as stems, stop words too.
fn stems(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    for_each_term(text, 2 * MAX_QUERY_TERMS, &mut |term, kind| {
        if kind != TermKind::Joined {
            stems.push(term.to_owned());
        }
    });
    stems
}

/// Phrases with which people ask, and words of descriptions. Only phrases that hardly mean anything
/// else: a word that is common in descriptions itself needs no other.
#[rustfmt::skip]
const PARAPHRASES: &[(&str, &str)] = &[
    // To make, change and remove.
    ("undo, roll back, take back, go back to", "rollback revert restore"),
    ("get rid of, throw away, throw out, wipe, erase, trash, discard, purge, scrap", "delete remove clear"),
    ("spin up, bring up, set up, stand up, provision", "create start"),
    ("fire up, kick off, boot up", "start run"),
    ("shut down, turn off, switch off, power down, pull plug", "stop shutdown disable off"),
    ("turn on, switch on, activate", "enable start on"),
    ("bounce, reboot, relaunch", "restart reboot"),
    ("alter, modify, tweak, adjust, amend, correct, fix up", "update edit change"),
    ("jot, jot down, write down, note down, scribble", "create note add"),
    ("carbon copy, duplicate, clone", "copy duplicate"),
    ("own copy, copy of somebody, copy of project", "fork copy"),
    ("put on hold, freeze, suspend", "pause stop"),
    ("bundle, squeeze, zip", "compress archive"),
    ("swap, substitute, replace everywhere", "replace"),
    // To look.
    ("look up, look for, hunt for, dig up, track down", "search find get"),
    ("peek, glance, have a look", "get show preview"),
    ("how many", "count number total"),
    ("how big, how large", "size storage stats"),
    ("how much left, cash left, money left", "balance account"),
    ("what columns, what fields, which columns, which fields", "schema describe columns fields"),
    ("who wrote, who changed, who flipped, who edited, who did", "history log audit author"),
    ("slowest, take longest, longest running, sluggish", "slow performance longest running"),
    ("speed up, make faster", "optimize performance"),
    ("is up, is down, still alive, reachable", "health status uptime check"),
    ("crash, keeps failing, keep restarting, not starting, broken", "diagnose troubleshoot error logs"),
    ("root cause, why did", "analyze diagnose"),
    // To tell.
    ("ring, ring up, dial, give call, phone", "call phone outbound"),
    ("text my, text him, text her, text them, text number", "sms send message phone"),
    ("drop line, letter", "email mail message send"),
    ("let know, inform, ping, tell team, tell everybody, tell everyone", "send message notify post"),
    ("shout, announce, tell all", "broadcast publish send message"),
    ("pass on, hand on", "forward"),
    ("everybody on thread, answer everybody, answer all", "reply all"),
    ("say no, turn down, refuse invitation", "decline reject"),
    ("say yes, confirm invitation", "accept approve"),
    ("answer mail, answer message, write back", "reply"),
    // Work.
    ("ticket, bug report", "issue"),
    ("open ticket, file bug, raise issue, file ticket, report bug, open bug", "create issue"),
    ("diary, agenda, appointment", "calendar event schedule"),
    ("book, reserve", "create booking reservation"),
    ("free slot, everybody free, all free, slot", "find meeting times availability schedule"),
    ("chore, to do, todo", "task todo"),
    ("boss, supervisor", "manager"),
    ("colleague, coworker, teammate", "user member people"),
    ("put me down as, am away, mark me", "presence status set"),
    ("on duty, on call", "oncall shift schedule"),
    ("sign in, log in, log on", "login authenticate"),
    ("wiki, wiki article", "page confluence"),
    ("may read, keep from reading, who can see", "permissions restrictions access"),
    ("editions, older version", "version history"),
    ("toggle, kill switch, switch flipped", "feature flag"),
    // Code.
    ("patch, change request, code somebody", "pull request"),
    ("give feedback on code, review code", "review pull request"),
    ("go green, builds pass, checks pass", "status checks"),
    ("line of development", "branch checkout"),
    ("hop to, switch to", "checkout switch"),
    ("out of index, unstage", "reset unstage"),
    // Machines.
    ("vm, virtual machine, box", "instance server droplet machine"),
    ("shell, command line of, terminal in", "exec command"),
    ("stop taking, evict", "cordon drain node"),
    ("from my laptop, reach service", "port forward"),
    ("home address connect, whitelist, allow my ip", "access list firewall ip"),
    ("on premises, into cloud", "migration migrate"),
    ("fake backend, fake api, pretend api, stub", "mock server"),
    ("every hour, every day, regularly, periodically", "schedule monitor"),
    ("leak, credentials, passwords", "secret detected credentials"),
    ("automation", "workflow"),
    ("by itself, by themselves", "automatic autofix"),
    // Money.
    ("what do we pay, owe, spend, expenses", "cost billing balance usage"),
    ("bill", "invoice billing"),
    ("buy, purchase", "order buy place"),
    ("sell", "order sell close position"),
    ("shares", "stock order"),
    ("holding, what i own", "positions portfolio"),
    // Documents, pictures, sound.
    ("bold, italic, underline, colour, color", "format font style"),
    ("turn red, highlight, colour automatically", "conditional format"),
    ("deck, slide deck, talk", "presentation slides"),
    ("graph of, plot", "chart"),
    ("trend lines, tiny chart", "sparkline"),
    ("which input gives, what value gives", "goal seek"),
    ("spreadsheet", "workbook excel worksheet"),
    ("rows we have", "count"),
    ("paint, picture, illustration", "image generate"),
    ("song, melody, tune", "music compose"),
    ("read aloud, read out, hear article, speak text", "text speech voice"),
    ("voice message, what was said, turn into text, dictation", "transcribe speech text"),
    ("background noise, noise", "isolate audio noise"),
    ("timbre, sound like", "voice clone"),
    // Web and places.
    ("site, website", "web page url"),
    ("surf, go to page, visit page", "navigate browser"),
    ("press button, tap", "click"),
    ("fill in, type in", "fill form input"),
    ("how far, how long take to get, travel time, by car", "distance duration directions route"),
    ("best order, order to visit", "optimization route stops"),
    ("can i reach, reach within", "isochrone reachable area"),
    ("around here, nearby, close by, near me", "search places nearby category"),
    ("restaurants, pubs, bars, cafes", "places search category"),
    ("will it rain, umbrella, how warm, how cold", "weather forecast temperature"),
    // Data.
    ("take first off, off queue, first job", "pop list queue"),
    ("leaderboard, ranking list", "sorted set score"),
    ("listeners, subscribers", "publish channel subscribe"),
    ("remember that, keep in mind", "memory add observation entity"),
    ("people linked, link between", "relation relations"),
    ("how does engine execute, execution plan", "explain plan query"),
    ("step by step, think about", "sequential thinking"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_stand_for_words_of_descriptions() {
        assert!(all_meant("ring up my customer").contains(&"call"));
        assert!(all_meant("please turn the light off").contains(&"disable"));
        assert!(all_meant("could you undo the last deployment?").contains(&"rollback"));
        assert!(all_meant("text a phone number").contains(&"sms"));
        assert!(all_meant("the text of a file").is_empty());
        assert!(all_meant("list the issues of a repository").is_empty());
        assert!(all_meant("").is_empty());
    }

    #[test]
    fn few_words_are_added() {
        let all: Vec<&str> = PARAPHRASES.iter().map(|(phrases, _)| *phrases).collect();
        assert_eq!(all_meant(&all.join(", ")).len(), MAX_ADDED);
    }

    #[test]
    fn no_phrase_is_there_twice() {
        let mut seen = std::collections::HashSet::new();
        for phrase in PARAPHRASES.iter().flat_map(|(phrases, _)| phrases.split(", ")) {
            assert!(seen.insert(stems(phrase)), "{phrase}");
        }
    }
}
