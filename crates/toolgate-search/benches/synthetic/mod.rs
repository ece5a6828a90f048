//! A catalogue of any size, the same on every machine.
//!
//! Words follow Zipf's law as those of real descriptions do: a few are in every second tool, most
//! are in a handful. Without that the longest lists of an index would be far too short.

use std::borrow::Borrow;

use toolgate_search::{ParameterText, SearchIndex, ServerText, StrategyName, ToolKey, ToolText};

/// How many tools a server has.
pub(crate) const TOOLS_PER_SERVER: usize = 30;

const VERBS: &[&str] = &[
    "get", "list", "create", "update", "delete", "search", "find", "add", "remove", "read",
    "write", "send", "set", "run", "start", "stop", "export", "import", "validate", "merge",
    "archive", "restore", "assign", "publish", "convert", "compare", "upload", "download",
    "schedule", "cancel",
];

/// The head of the vocabulary, most common first; the tail is made up.
const COMMON: &[&str] = &[
    "name", "data", "user", "file", "list", "id", "return", "value", "type", "specific", "result",
    "project", "page", "query", "summary", "account", "time", "filter", "number", "content",
    "message", "status", "default", "date", "item", "field", "key", "string", "group", "record",
    "issue", "report", "document", "image", "event", "order", "customer", "invoice", "table",
    "column", "database", "repo", "branch", "commit", "channel", "thread", "task", "label",
    "metric", "alert", "chart", "cluster", "node", "pod", "bucket", "object", "folder", "calendar",
    "meeting", "contact", "address", "route", "weather", "price", "stock", "payment", "ticket",
    "comment", "review", "release", "rollout", "stage", "variable", "secret",
];

const SYLLABLES: &[&str] = &[
    "ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ra", "se", "ti", "vo", "xa", "ze",
    "mor", "tan", "lix", "dor", "ven",
];

/// How many different words there are.
const VOCABULARY: u64 = 20_000;

/// One server with its tools, owned.
pub(crate) struct Server {
    pub(crate) name: String,
    description: String,
    tools: Vec<Tool>,
}

struct Tool {
    key: ToolKey,
    name: String,
    description: String,
    parameters: Vec<(String, String)>,
}

impl Server {
    /// The server with this number; another `version` of it has other texts.
    pub(crate) fn generate(number: usize, version: u64) -> Self {
        let mut random = Random(number as u64 ^ (version << 40));
        let name = format!("{}{number}", random.word());
        let tools = (0..TOOLS_PER_SERVER).map(|place| Tool::generate(&name, place, &mut random));
        Self { tools: tools.collect(), description: random.sentence(15), name }
    }

    /// Puts the server into an index under the name `identity`.
    pub(crate) fn put_into(&self, index: &mut SearchIndex, identity: &str) {
        let text = ServerText { name: &self.name, description: &self.description };
        let tools: Vec<_> = self.tools.iter().map(|tool| (tool.key.clone(), tool.text())).collect();
        index.replace_server(identity, text, &tools);
    }
}

impl Tool {
    fn generate(server: &str, place: usize, random: &mut Random) -> Self {
        let verb = VERBS[random.skewed(VERBS.len() as u64)];
        let name = format!("{verb}_{}_{}", random.word(), random.word());
        let words = 10 + random.below(30);
        let parameters = (0..random.below(8)).map(|_| {
            let name = format!("{}_{}", random.word(), random.word());
            let words = 4 + random.below(10);
            (name, random.sentence(words))
        });
        let parameters = parameters.collect();
        let description = format!("{verb} {}", random.sentence(words));
        Self {
            key: ToolKey::new(format!("{server}_{name}_{place}")),
            name,
            description,
            parameters,
        }
    }

    fn text(&self) -> ToolText<'_> {
        let parameters = self.parameters.iter().map(|(name, description)| ParameterText {
            name,
            description,
            values: Vec::new(),
        });
        ToolText {
            name: &self.name,
            title: None,
            description: &self.description,
            parameters: parameters.collect(),
        }
    }
}

/// Servers with this many tools together.
pub(crate) fn servers(tools: usize) -> impl Iterator<Item = Server> {
    (0..tools.div_ceil(TOOLS_PER_SERVER)).map(|number| Server::generate(number, 0))
}

/// An index of these servers.
pub(crate) fn index<S: Borrow<Server>>(
    strategy: StrategyName,
    servers: impl IntoIterator<Item = S>,
) -> SearchIndex {
    let mut index = SearchIndex::ranked_by(strategy);
    for server in servers {
        let server = server.borrow();
        server.put_into(&mut index, &server.name);
    }
    index
}

/// The generator of Steele, Lea and Flood, which needs one number of state.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A rank below `end`, each about as likely as one through itself.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks are small and positive"
    )]
    fn skewed(&mut self, end: u64) -> usize {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (((end + 1) as f64).powf(uniform) as usize).saturating_sub(1)
    }

    fn word(&mut self) -> String {
        let rank = self.skewed(VOCABULARY);
        if let Some(word) = COMMON.get(rank) {
            return (*word).to_owned();
        }
        let base = SYLLABLES.len();
        let places = [rank % base, rank / base % base, rank / base / base % base, rank % 7];
        places.map(|place| SYLLABLES[place]).concat()
    }

    fn sentence(&mut self, words: u64) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}
