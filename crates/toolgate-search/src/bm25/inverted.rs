//! Maps terms to the documents that contain them.
//!
//! A removed document is only marked. Its postings stay, because removing them would cost time in
//! proportion to the catalog. The number of live documents with a term is corrected at once.
//! [`Inverted::compact`] removes the postings.

use std::collections::HashMap;

/// The position of a document. It changes when the index is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DocumentId(u32);

impl DocumentId {
    fn at(place: usize) -> Self {
        // A document takes more than a byte, so memory ends long before the numbers do.
        Self(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// The position, as an index into tables that are parallel to the documents.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The position of a term. It changes when the index is compacted.
pub(super) type TermId = u32;

/// A document with a term, and the weight of the term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) document: DocumentId,
    /// The part of the score that does not depend on other documents.
    pub(super) impact: f32,
}

/// All postings of a term, including those of removed documents.
#[derive(Debug, Default)]
pub(super) struct PostingList {
    /// How many live documents have the term.
    live: usize,
    entries: Vec<Posting>,
}

impl PostingList {
    pub(super) fn entries(&self) -> &[Posting] {
        &self.entries
    }
}

#[derive(Debug, Default)]
pub(super) struct Inverted {
    dictionary: HashMap<Box<str>, TermId>,
    lists: Vec<PostingList>,
    /// The terms of each document; `None` if it was removed.
    documents: Vec<Option<Box<[TermId]>>>,
    live: usize,
}

impl Inverted {
    /// Adds a document with these terms, each of them once.
    pub(super) fn insert<'t>(&mut self, terms: impl Iterator<Item = (&'t str, f32)>) -> DocumentId {
        let terms: Vec<(TermId, f32)> =
            terms.map(|(term, impact)| (self.intern(term), impact)).collect();
        self.insert_interned(terms.into_iter())
    }

    /// [`Self::insert`] with terms of [`Self::intern`].
    pub(super) fn insert_interned(
        &mut self,
        terms: impl Iterator<Item = (TermId, f32)>,
    ) -> DocumentId {
        let document = DocumentId::at(self.documents.len());
        let terms = terms.map(|(id, impact)| {
            let list = &mut self.lists[id as usize];
            list.live += 1;
            list.entries.push(Posting { document, impact });
            id
        });
        let terms = terms.collect();
        self.documents.push(Some(terms));
        self.live += 1;
        document
    }

    /// Removes a document at once. [`Self::compact`] frees its memory.
    pub(super) fn remove(&mut self, document: DocumentId) {
        let Some(terms) = self.documents.get_mut(document.index()).and_then(Option::take) else {
            return;
        };
        self.live -= 1;
        for term in terms {
            self.lists[term as usize].live -= 1;
        }
    }

    /// The postings of a term that at least one live document has.
    pub(super) fn list(&self, term: &str) -> Option<&PostingList> {
        let list = &self.lists[*self.dictionary.get(term)? as usize];
        (list.live > 0).then_some(list)
    }

    /// How many live documents have a term.
    pub(super) fn live_with(&self, term: &str) -> usize {
        self.list(term).map_or(0, |list| list.live)
    }

    /// Calls `sink` with each term of live documents, and how many of them have it, in no order.
    pub(super) fn for_each_term(&self, sink: &mut dyn FnMut(&str, usize)) {
        for (term, id) in &self.dictionary {
            let live = self.lists[*id as usize].live;
            if live > 0 {
                sink(term, live);
            }
        }
    }

    /// The weight of a term: high for a rare term, nearly zero for a term that all documents have.
    pub(super) fn rarity(&self, list: &PostingList) -> f32 {
        let having = count(list.live);
        let lacking = count(self.live) - having;
        ((lacking + 0.5) / (having + 0.5)).ln_1p()
    }

    /// The weight of a term, whether or not a document has it.
    pub(super) fn rarity_of(&self, term: &str) -> f32 {
        let nobody = || self.rarity(&PostingList::default());
        self.list(term).map_or_else(nobody, |list| self.rarity(list))
    }

    /// The number of live documents.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// The number of positions, removed documents included.
    pub(super) fn places(&self) -> usize {
        self.documents.len()
    }

    /// The number of positions of removed documents.
    pub(super) fn dead(&self) -> usize {
        self.documents.len() - self.live
    }

    /// Removes the postings of removed documents, and unused terms. Returns the new position for
    /// each old one.
    pub(super) fn compact(&mut self) -> Vec<Option<DocumentId>> {
        let mut next = 0;
        let moved: Vec<Option<DocumentId>> = self
            .documents
            .iter()
            .map(|document| {
                document.as_ref()?;
                next += 1;
                Some(DocumentId::at(next - 1))
            })
            .collect();

        let mut kept = 0;
        let mut renamed: Vec<TermId> = Vec::with_capacity(self.lists.len());
        for list in &self.lists {
            renamed.push(kept);
            kept += TermId::from(list.live > 0);
        }
        self.dictionary.retain(|_, term| {
            let alive = self.lists[*term as usize].live > 0;
            *term = renamed[*term as usize];
            alive
        });
        self.dictionary.shrink_to_fit();

        self.lists.retain_mut(|list| {
            list.entries.retain_mut(|posting| match moved[posting.document.index()] {
                Some(document) => {
                    posting.document = document;
                    true
                }
                None => false,
            });
            list.entries.shrink_to_fit();
            list.live > 0
        });
        self.documents.retain(Option::is_some);
        for term in self.documents.iter_mut().flatten().flatten() {
            *term = renamed[*term as usize];
        }
        moved
    }

    /// The position of a term. A term that no document gets is removed by the next compaction.
    pub(super) fn intern(&mut self, term: &str) -> TermId {
        if let Some(id) = self.dictionary.get(term) {
            return *id;
        }
        let id = TermId::try_from(self.lists.len()).unwrap_or(TermId::MAX);
        self.dictionary.insert(Box::from(term), id);
        self.lists.push(PostingList::default());
        id
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rarity does not need the last digits of a count")]
fn count(number: usize) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(index: &mut Inverted, terms: &[&str]) -> DocumentId {
        index.insert(terms.iter().map(|term| (*term, 1.0)))
    }

    fn documents(index: &Inverted, term: &str) -> Vec<usize> {
        let entries = index.list(term).map(PostingList::entries).unwrap_or_default();
        entries.iter().map(|posting| posting.document.index()).collect()
    }

    #[test]
    fn counts_follow_removals_at_once() {
        let mut index = Inverted::default();
        let first = insert(&mut index, &["read", "file"]);
        insert(&mut index, &["write", "file"]);
        index.remove(first);
        index.remove(first);
        assert_eq!((index.live(), index.dead()), (1, 1));
        assert!(index.list("read").is_none());
        assert_eq!(index.list("file").unwrap().live, 1);
    }

    #[test]
    fn compaction_keeps_live_documents_and_frees_the_others() {
        let mut index = Inverted::default();
        let first = insert(&mut index, &["read", "file"]);
        let second = insert(&mut index, &["write", "file"]);
        let third = insert(&mut index, &["file", "move"]);
        index.remove(second);
        let moved = index.compact();
        assert_eq!(moved[first.index()].unwrap().index(), 0);
        assert!(moved[second.index()].is_none());
        assert_eq!(moved[third.index()].unwrap().index(), 1);
        assert_eq!(documents(&index, "file"), [0, 1]);
        assert_eq!(documents(&index, "move"), [1]);
        assert!(!index.dictionary.contains_key("write"));
        assert_eq!((index.places(), index.lists.len()), (2, 3));

        // The renamed terms still belong to their documents.
        index.remove(moved[third.index()].unwrap());
        assert!(index.list("move").is_none());
        assert_eq!(index.list("file").unwrap().live, 1);
    }

    #[test]
    fn rare_terms_tell_more() {
        let mut index = Inverted::default();
        insert(&mut index, &["file", "read"]);
        insert(&mut index, &["file"]);
        let rarity = |term| index.rarity(index.list(term).unwrap());
        assert!(rarity("read") > rarity("file"));
        assert!(rarity("file") > 0.0);
    }
}
