//! Ranking by weighted words.
//!
//! Two inverted indexes: one of tools and a small one of servers. A tool's score is its own plus a
//! share of its server's. So the text of a server is stored once, and the common words of one large
//! server do not seem common among tools.
//!
//! It does not use a search engine such as tantivy, because the catalog is small and in memory,
//! because a change of a server must cost no more than its own tools, and because scores must not
//! depend on segments or on the order of insertion.

mod document;
mod inverted;
mod parameters;
pub(crate) mod query_terms;

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

pub(crate) use self::document::tool_terms;
pub use self::parameters::{Bm25Parameters, FieldWeights};
use self::{
    inverted::{DocumentId, Inverted, TermId},
    query_terms::NameTerms,
};
use crate::{
    analysis::{self, TermKind},
    dense::{for_each_table_word_near, is_table_word},
    prepared::{PreparedTools, PreparedWords},
    query::{Hit, Query},
    search_error::SearchError,
    spelling::{self, KnownWords, Letters, Misspelled},
    strategy::Strategy,
    text::{ServerText, ToolKey, ToolText},
    top::{Candidate, Top},
};

/// The tools of all servers by the words in their texts.
#[derive(Debug, Default)]
pub struct Bm25Index {
    parameters: Bm25Parameters,
    tools: Inverted,
    /// The key of the tool at each position in `tools`.
    keys: Vec<ToolKey>,
    /// For each place in `tools`: its server's place in `servers`. A tool lives exactly as long as
    /// that document does. Apart from the keys, because every query runs through all of these.
    owners: Vec<DocumentId>,
    servers: Inverted,
    /// The identity of the server at each position in `servers`.
    identities: Vec<Arc<str>>,
    members: HashMap<Arc<str>, Member>,
}

/// The scores of the words of a query.
#[derive(Debug)]
pub(crate) struct WordScores {
    /// The score at each position of a tool, without names.
    pub(crate) scores: Vec<f32>,
    /// Of the servers.
    pub(crate) servers: ServerScores,
    /// What no sum of these passes.
    pub(crate) ceiling: f32,
    /// The names that the query may be.
    pub(crate) names: NameTerms,
    /// How many different words the query has.
    pub(crate) words: usize,
    /// The score of a tool that has every word of the query once, those included that no tool has.
    pub(crate) wanted: f32,
}

/// The contributions of servers, by position.
#[derive(Debug, Default)]
pub(crate) struct ServerScores {
    /// What the words of the query say of the server; minus infinity where its tools are not
    /// wanted, or gone.
    pub(crate) own: Vec<f32>,
    /// What is added for tools that are found anyway.
    pub(crate) lift: Vec<f32>,
    /// What the sum of both stays under where no impact is above one.
    bound: f32,
}

#[derive(Debug)]
struct Member {
    document: DocumentId,
    tools: Vec<DocumentId>,
}

impl Bm25Index {
    /// An empty index with other parameters than the defaults.
    pub fn with_parameters(parameters: Bm25Parameters) -> Self {
        Self { parameters: parameters.sound(), ..Self::default() }
    }

    /// What the tools of each server get for their server.
    fn server_scores(&self, query: &Query<'_>, words: &[String]) -> ServerScores {
        let places = self.servers.places();
        let mut scores =
            ServerScores { own: vec![f32::NEG_INFINITY; places], ..Default::default() };
        let wanted: &mut dyn Iterator<Item = &Member> = match query.servers {
            Some(names) => &mut names.iter().filter_map(|name| self.members.get(*name)),
            None => &mut self.members.values(),
        };
        for member in wanted {
            scores.own[member.document.index()] = 0.0;
        }
        scores.lift = vec![0.0; places];
        let Bm25Parameters { server_share, hint_share, server_name_lift, .. } = self.parameters;
        let hint = query.hint.map(query_terms::words).unwrap_or_default();
        let names = query_terms::server_name_terms(query.text);
        scores.bound = add_scores(&self.servers, words, server_share, &mut scores.own)
            + add_scores(&self.servers, &hint, hint_share, &mut scores.lift)
            + add_scores(&self.servers, &names, server_name_lift, &mut scores.lift);
        scores
    }

    /// The score of every tool for the words of a query.
    pub(crate) fn word_scores(&self, query: &Query<'_>) -> WordScores {
        let words = query_terms::words(query.text);
        let names = query_terms::name_terms(query.text);
        let mut scores = vec![0.0; self.tools.places()];
        let meant = query_terms::paraphrased(query.text, &words);
        let share = self.parameters.paraphrase_share;
        let bound = add_scores(&self.tools, &words, 1.0, &mut scores)
            + add_scores(&self.tools, &meant, share, &mut scores);
        let wanted = words.iter().map(|word| self.tools.rarity_of(word)).sum();
        let servers = self.server_scores(query, &words);
        let highest_impact = self.parameters.saturation + 1.0;
        let ceiling = (bound + servers.bound) * highest_impact + 1.0;
        WordScores { scores, servers, ceiling, names, words: words.len(), wanted }
    }

    /// Calls `sink` with the places of the tools that the query calls by name: in tier 1 where a
    /// word of it is the name, in tier 2 where the whole query is. They belong above any score that
    /// words can give.
    pub(crate) fn for_each_named(&self, names: &NameTerms, sink: &mut dyn FnMut(usize, u8)) {
        for (terms, tier) in [(&names.words, 1), (&names.whole, 2)] {
            for list in terms.iter().filter_map(|term| self.tools.list(term)) {
                for posting in list.entries() {
                    sink(posting.document.index(), tier);
                }
            }
        }
    }

    /// The places of a server's tools, in the order in which they were added, and that of the
    /// server itself.
    pub(crate) fn places_of(&self, server: &str) -> Option<(Range<usize>, usize)> {
        let member = self.members.get(server)?;
        // They were added one after the other, and a sweep keeps the order.
        let start = member.tools.first().map_or(0, |first| first.index());
        Some((start..start + member.tools.len(), member.document.index()))
    }

    /// The places of dead documents are given back once they are a quarter of all. Tools and
    /// servers are counted together: the work is in proportion to both, so that many changes of a
    /// small server beside a large one do not each pay for the large one.
    fn compact_if_due(&mut self) {
        let dead = self.tools.dead() + self.servers.dead();
        let places = self.tools.places() + self.servers.places();
        if dead * 4 <= places {
            return;
        }
        let servers = self.servers.compact();
        let tools = self.tools.compact();
        let mut places = servers.iter();
        self.identities.retain(|_| places.next().is_some_and(Option::is_some));
        let mut places = tools.iter();
        self.keys.retain(|_| places.next().is_some_and(Option::is_some));
        self.owners.retain_mut(|owner| match servers[owner.index()] {
            Some(server) => {
                *owner = server;
                true
            }
            None => false,
        });
        for member in self.members.values_mut() {
            if let Some(document) = servers[member.document.index()] {
                member.document = document;
            }
            for tool in &mut member.tools {
                if let Some(document) = tools[tool.index()] {
                    *tool = document;
                }
            }
        }
    }

    /// Replaces the tools of a server, which have these keys and names.
    fn put(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, &str)],
        words: &PreparedWords,
    ) {
        self.forget(server);
        let terms = document::server_terms(&self.parameters, server, text);
        let document =
            self.servers.insert(terms.iter().map(|(term, impact)| (term.as_str(), *impact)));
        let identity: Arc<str> = Arc::from(server);
        self.identities.push(Arc::clone(&identity));

        // A term is looked up once, however many of the tools have it.
        let known: Vec<TermId> = words.dictionary().map(|term| self.tools.intern(term)).collect();
        let mut seen = HashSet::new();
        let mut member = Member { document, tools: Vec::with_capacity(tools.len()) };
        for (place, (key, name)) in
            tools.iter().enumerate().filter(|(_, (key, _))| seen.insert(key))
        {
            let names = document::tool_name_terms(server, key, name);
            let names: Vec<TermId> = names.iter().map(|name| self.tools.intern(name)).collect();
            let texts = words.tool(place).map(|(term, impact)| (known[term as usize], impact));
            let terms = texts.chain(names.into_iter().map(|name| (name, 1.0)));
            let place = self.tools.insert_interned(terms);
            self.keys.push(key.clone());
            self.owners.push(document);
            member.tools.push(place);
        }
        self.members.insert(identity, member);
        self.compact_if_due();
    }

    fn forget(&mut self, server: &str) {
        if let Some(member) = self.members.remove(server) {
            self.servers.remove(member.document);
            for tool in member.tools {
                self.tools.remove(tool);
            }
        }
    }
}

impl Strategy for Bm25Index {
    fn replace_server(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    ) {
        let (named, texts) = apart(tools);
        self.put(server, text, &named, &PreparedWords::of(&self.parameters, &texts));
    }

    fn takes_prepared(&self) -> bool {
        self.parameters == Bm25Parameters::default()
    }

    fn replace_prepared(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, &str)],
        prepared: &PreparedTools,
    ) {
        self.put(server, text, tools, &prepared.words);
    }

    fn remove_server(&mut self, server: &str) {
        self.forget(server);
        self.compact_if_due();
    }

    fn tool_count(&self) -> usize {
        self.tools.live()
    }

    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
        let WordScores { mut scores, servers, ceiling, names, .. } = self.word_scores(query);
        self.for_each_named(&names, &mut |place, tier| {
            let score = &mut scores[place];
            let lift = ceiling * f32::from(tier);
            if *score < lift {
                *score += lift;
            }
        });

        let mut top = Top::new(query.limit);
        for (place, (own, owner)) in scores.into_iter().zip(&self.owners).enumerate() {
            let found = own + servers.own[owner.index()];
            let score = found + servers.lift[owner.index()];
            if found > 0.0 && top.may_enter(score) {
                let server = &self.identities[owner.index()];
                top.offer(Candidate { score, key: &self.keys[place], server, fit: None });
            }
        }
        Ok(top.into_hits())
    }

    fn corrected(&self, text: &str) -> Option<String> {
        spelling::corrected(text, self)
    }

    fn called_by_name(&self, query: &Query<'_>) -> Vec<&ToolKey> {
        let mut called = Vec::new();
        self.for_each_named(&query_terms::name_terms(query.text), &mut |place, _| {
            called.extend(self.keys.get(place));
        });
        called
    }
}

impl KnownWords for Bm25Index {
    fn knows(&self, word: &str) -> bool {
        let is_name = || {
            let name = document::name_term(word);
            self.tools.list(&name).or_else(|| self.servers.list(&name)).is_some()
        };
        is_table_word(word) || self.mentions(word) > 0 || is_name()
    }

    fn for_each_near(&self, word: &Misspelled<'_>, sink: &mut dyn FnMut(&str, usize)) {
        for_each_table_word_near(word, &mut |near| {
            let tools = self.mentions(near);
            if tools > 0 {
                sink(near, tools);
            }
        });
        // Names and other words that the table does not have, as they are indexed.
        self.tools.for_each_term(&mut |term, tools| {
            if Letters::of(term).is_some_and(|letters| word.may_be(letters)) {
                sink(term, tools);
            }
        });
    }
}

impl Bm25Index {
    /// How many tools or servers have a word. A stop word is in all of them.
    fn mentions(&self, word: &str) -> usize {
        let mut mentions = 0;
        analysis::for_each_term(word, 1, &mut |term, kind| {
            mentions = match kind {
                TermKind::StopWord => usize::MAX,
                _ => self.tools.live_with(term) + self.servers.live_with(term),
            };
        });
        mentions
    }
}

/// The keys and the names of tools, and their texts.
pub(crate) fn apart<'t>(
    tools: &[(ToolKey, ToolText<'t>)],
) -> (Vec<(ToolKey, &'t str)>, Vec<ToolText<'t>>) {
    tools.iter().map(|(key, tool)| ((key.clone(), tool.name), tool.clone())).unzip()
}

/// Adds to each document's score what the terms say of it, in the order of the terms: sums of
/// floating point numbers depend on their order, and results must not depend on that of insertion.
///
/// Returns what a document with an impact of one in every term would get. It comes from the terms
/// and not from the scores because those of dead documents are among them.
fn add_scores(index: &Inverted, terms: &[String], share: f32, scores: &mut [f32]) -> f32 {
    let mut bound = 0.0;
    for term in terms {
        let Some(list) = index.list(term) else { continue };
        let factor = share * index.rarity(list);
        bound += factor;
        for posting in list.entries() {
            scores[posting.document.index()] += factor * posting.impact;
        }
    }
    bound
}

#[cfg(test)]
mod tests;
