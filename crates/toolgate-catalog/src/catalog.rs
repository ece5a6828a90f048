//! All known tools by their exposed names.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    definition::Definition,
    identity::{ExposedName, ServerName, ToolId},
    names::{self, PreferredName},
};

/// Every tool of every server, found by its exposed name.
///
/// The cost of replacing a server's tools is proportional to that server, and to the tools of
/// others with the same names.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    servers: Vec<ServerTools>,
    positions: HashMap<ServerName, usize>,
    /// The tools that prefer each plain name. If there are several, each of them gets a hash.
    claims: HashMap<String, BTreeSet<ToolId>>,
    /// The tools that would have each name without a doubled prefix.
    short_claims: HashMap<String, BTreeSet<ToolId>>,
    by_name: HashMap<ExposedName, ToolId>,
}

/// The settings of a server that the catalog needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogServer {
    /// Its name in the configuration.
    pub name: ServerName,
    /// Replaces the server's name in the names of its tools; may be empty.
    pub prefix: Option<String>,
    /// The description in the configuration.
    pub description: Option<String>,
    /// Whether its tools are deferred regardless of the threshold.
    pub defer_loading: Option<bool>,
    /// The same for single tools, by their own names.
    pub defer_tools: HashMap<String, bool>,
}

/// A tool and its exposed name.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The identity.
    pub id: ToolId,
    /// The exposed name.
    pub name: ExposedName,
    /// Replaces the server's name in its exposed name.
    pub prefix: Option<Arc<str>>,
    /// The definition that its server sent.
    pub definition: Arc<Definition>,
}

/// The effect of a change to the catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Whether the server's own tools differ from before.
    pub changed: bool,
    /// Other servers with tools that were renamed.
    pub renamed: BTreeSet<ServerName>,
}

#[derive(Debug, Clone)]
struct ServerTools {
    entry: CatalogServer,
    /// In the order the server listed them.
    tools: Vec<Tool>,
    by_tool: HashMap<Arc<str>, usize>,
}

impl CatalogServer {
    /// The beginning of the names of its tools, unless they are cut; `None` if its prefix is empty.
    pub fn name_beginning(&self) -> Option<String> {
        names::beginning(self.name.as_str(), self.prefix.as_deref())
    }

    /// A server with nothing set but its name.
    pub fn named(name: impl Into<ServerName>) -> Self {
        Self {
            name: name.into(),
            prefix: None,
            description: None,
            defer_loading: None,
            defer_tools: HashMap::new(),
        }
    }

    /// Whether the configuration defers `tool`. The tool's own setting overrides the server's.
    pub fn defers(&self, tool: &str) -> Option<bool> {
        self.defer_tools.get(tool).copied().or(self.defer_loading)
    }

    /// Whether a tool of this exposed name may belong to this server. For servers whose tools are
    /// unknown.
    pub fn may_own(&self, name: &str) -> bool {
        let beginning = self.name_beginning();
        beginning.is_some_and(|beginning| name.starts_with(&beginning))
    }
}

impl Tool {
    /// A tool outside of a catalog: no other tool can prefer its name.
    pub fn alone(
        server: &ServerName,
        prefix: Option<Arc<str>>,
        definition: Arc<Definition>,
    ) -> Self {
        let id = ToolId::new(server.clone(), Arc::clone(definition.name()));
        let name = PreferredName::of(&id, prefix.as_deref()).alone(&id);
        Self { id, name, prefix, definition }
    }

    /// A request that is no tool call, as a tool that is named after its method, so that the policy
    /// can judge it.
    pub fn of_method(
        server: &ServerName,
        prefix: Option<Arc<str>>,
        definition: Arc<Definition>,
    ) -> Self {
        let id = ToolId::new(server.clone(), Arc::clone(definition.name()));
        let name = ExposedName::new(Arc::clone(definition.name()));
        Self { id, name, prefix, definition }
    }
}

impl Catalog {
    /// A catalog of servers whose tools are not known yet. Lists have the order of the servers.
    pub fn new(servers: impl IntoIterator<Item = CatalogServer>) -> Self {
        let mut catalog = Self::default();
        for entry in servers {
            catalog.add_server(entry);
        }
        catalog
    }

    /// Adds a server whose tools are not known yet, at the end. Does nothing if the name is taken.
    /// Returns whether it was added.
    pub fn add_server(&mut self, entry: CatalogServer) -> bool {
        if self.positions.contains_key(&entry.name) {
            return false;
        }
        self.positions.insert(entry.name.clone(), self.servers.len());
        self.servers.push(ServerTools { entry, tools: Vec::new(), by_tool: HashMap::new() });
        true
    }

    /// Takes a server and its tools away. Costs in proportion to it and to the number of servers.
    pub fn remove_server(&mut self, server: &ServerName) -> Replaced {
        let replaced = self.replace_server(server, Vec::new());
        if let Some(position) = self.positions.remove(server) {
            self.servers.remove(position);
            for later in self.positions.values_mut().filter(|later| **later > position) {
                *later -= 1;
            }
        }
        replaced
    }

    /// Puts `definitions` in the position of the server's tools. An unknown server changes nothing.
    pub fn replace_server(
        &mut self,
        server: &ServerName,
        definitions: Vec<Definition>,
    ) -> Replaced {
        let Some(&position) = self.positions.get(server) else {
            return Replaced::default();
        };
        let old = std::mem::take(&mut self.servers[position].tools);
        if same_content(&old, &definitions) {
            self.servers[position].tools = old;
            return Replaced::default();
        }
        let prefix = self.servers[position].entry.prefix.clone();
        let mut touched: HashSet<String> = HashSet::new();
        for tool in &old {
            self.by_name.remove(&tool.name);
            let preferred = PreferredName::of(&tool.id, prefix.as_deref());
            if let Some(short) = preferred.short {
                withdraw(&mut self.short_claims, &short, &tool.id);
                touched.insert(short);
            }
            withdraw(&mut self.claims, &preferred.plain, &tool.id);
            touched.insert(preferred.plain);
        }
        let mut tools = Vec::with_capacity(definitions.len());
        let shared: Option<Arc<str>> = prefix.as_deref().map(Into::into);
        for definition in definitions {
            let id = ToolId { server: server.clone(), tool: Arc::clone(definition.name()) };
            let preferred = PreferredName::of(&id, prefix.as_deref());
            if let Some(short) = preferred.short {
                self.short_claims.entry(short.clone()).or_default().insert(id.clone());
                touched.insert(short);
            }
            self.claims.entry(preferred.plain.clone()).or_default().insert(id.clone());
            touched.insert(preferred.plain);
            // The name is assigned below, when all claims are known.
            let name = ExposedName::new("");
            let prefix = shared.clone();
            tools.push(Tool { id, name, prefix, definition: Arc::new(definition) });
        }
        let listed = &mut self.servers[position];
        listed.by_tool = tools
            .iter()
            .enumerate()
            .map(|(index, tool)| (Arc::clone(&tool.id.tool), index))
            .collect();
        listed.tools = tools;
        Replaced { changed: true, renamed: self.name_again(server, &touched) }
    }

    /// Assigns names to all tools that prefer one of `touched`. Returns the other servers that this changed.
    fn name_again(
        &mut self,
        server: &ServerName,
        touched: &HashSet<String>,
    ) -> BTreeSet<ServerName> {
        let claimants = |name: &String| {
            let all = self.claims.get(name).into_iter().chain(self.short_claims.get(name));
            all.flatten().cloned().collect::<Vec<ToolId>>()
        };
        // Sorted, so that the result does not depend on the order of a hash map. Tools without a short
        // name come first, as they do in the choice of names.
        let mut named: Vec<(bool, String, ToolId)> = Vec::new();
        for id in touched.iter().flat_map(claimants) {
            let preferred = self.preferred(&id);
            named.push((preferred.short.is_some(), preferred.plain, id));
        }
        named.sort_unstable();
        named.dedup();
        // Nobody holds a name that another one gets now.
        for (_, _, id) in &named {
            if let Some(tool) = self.by_id(id) {
                let name = tool.name.clone();
                self.by_name.remove(&name);
            }
        }
        let mut renamed = BTreeSet::new();
        for (_, _, id) in named {
            let name = self.assigned(&id);
            let listed = &mut self.servers[self.positions[&id.server]];
            let Some(&index) = listed.by_tool.get(&id.tool) else { continue };
            let tool = &mut listed.tools[index];
            if tool.name != name && id.server != *server {
                renamed.insert(id.server.clone());
            }
            tool.name = name.clone();
            self.by_name.insert(name, id);
        }
        renamed
    }

    /// The name that a tool gets beside all others.
    fn assigned(&self, id: &ToolId) -> ExposedName {
        let preferred = self.preferred(id);
        let is_free = |name: &ExposedName| self.by_name.get(name).is_none_or(|owner| *owner == *id);
        if let Some(short) = &preferred.short
            && !self.claims.contains_key(short)
            && self.short_claims.get(short).is_some_and(|claimants| claimants.len() == 1)
        {
            let name = ExposedName::new(short.as_str());
            if is_free(&name) {
                return name;
            }
        }
        let mut name = preferred.assign(id, self.is_contested(&preferred.plain, id));
        let mut attempt = 0;
        while !is_free(&name) {
            attempt += 1;
            name = preferred.hashed(id, attempt);
        }
        name
    }

    /// Whether a tool shares its plain name with another one. A tool of the same server that would be shortened to
    /// it gives way. One of another server may have had the name before, so nobody gets it.
    fn is_contested(&self, plain: &str, id: &ToolId) -> bool {
        let same = self.claims.get(plain).is_some_and(|claimants| claimants.len() > 1);
        let mut shortened = self.short_claims.get(plain).into_iter().flatten();
        same || shortened.any(|other| other.server != id.server)
    }

    fn preferred(&self, id: &ToolId) -> PreferredName {
        let prefix = self.positions.get(&id.server);
        let prefix = prefix.and_then(|position| self.servers[*position].entry.prefix.as_deref());
        PreferredName::of(id, prefix)
    }

    /// The tool of this exposed name.
    pub fn resolve(&self, name: &str) -> Option<&Tool> {
        self.by_id(self.by_name.get(name)?)
    }

    /// The tool whose exposed name would be this one if its prefix stayed doubled. The flows of scripts know tools
    /// by their exposed names, so this is for calls and questions from outside of scripts.
    pub fn resolve_doubled(&self, name: &str) -> Option<&Tool> {
        let claimants = self.claims.get(name)?;
        let id = claimants.first().filter(|_| claimants.len() == 1)?;
        let preferred = self.preferred(id);
        self.by_id(id).filter(|_| preferred.short.is_some() && !preferred.needs_hash)
    }

    /// The tool that a server calls by this name in its own texts. `None` if several servers do, or if the
    /// name may be the exposed name of a tool of another server, which may come later.
    pub fn resolve_own(&self, name: &str) -> Option<&Tool> {
        if names::HOST_TOOL_NAMES.contains(&name) || names::SCRIPT_FUNCTION_NAMES.contains(&name) {
            return None;
        }
        let mut owners = self.servers.iter().filter(|listed| listed.by_tool.contains_key(name));
        let (Some(owner), None) = (owners.next(), owners.next()) else { return None };
        let may_be_another = |listed: &ServerTools| {
            listed.entry.name != owner.entry.name && listed.entry.may_own(name)
        };
        if self.servers.iter().any(may_be_another) {
            return None;
        }
        owner.tools.get(*owner.by_tool.get(name)?)
    }

    /// The tool of this identity.
    pub fn by_id(&self, id: &ToolId) -> Option<&Tool> {
        let listed = &self.servers[*self.positions.get(&id.server)?];
        listed.tools.get(*listed.by_tool.get(&id.tool)?)
    }

    /// The servers, in the order of the configuration.
    pub fn servers(&self) -> impl Iterator<Item = &CatalogServer> {
        self.servers.iter().map(|listed| &listed.entry)
    }

    /// One server.
    pub fn server(&self, name: &str) -> Option<&CatalogServer> {
        self.positions.get(name).map(|position| &self.servers[*position].entry)
    }

    /// The tools of one server, in its own order; empty if it is unknown.
    pub fn tools_of(&self, server: &str) -> &[Tool] {
        self.positions.get(server).map_or(&[], |position| &self.servers[*position].tools)
    }

    /// All tools, by server and in each server's order.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.servers.iter().flat_map(|listed| &listed.tools)
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether no tool is known.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

fn withdraw(claims: &mut HashMap<String, BTreeSet<ToolId>>, name: &str, id: &ToolId) {
    if let Some(claimants) = claims.get_mut(name) {
        claimants.remove(id);
        if claimants.is_empty() {
            claims.remove(name);
        }
    }
}

fn same_content(old: &[Tool], new: &[Definition]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| old.definition.fingerprint() == new.fingerprint())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn definition(name: &str) -> Definition {
        Definition::from_value(&json!({"name": name, "inputSchema": {}})).unwrap()
    }

    fn definitions(names: &[&str]) -> Vec<Definition> {
        names.iter().map(|name| definition(name)).collect()
    }

    fn names(catalog: &Catalog) -> Vec<&str> {
        catalog.tools().map(|tool| tool.name.as_str()).collect()
    }

    fn unprefixed(name: &str) -> CatalogServer {
        CatalogServer { prefix: Some(String::new()), ..CatalogServer::named(name) }
    }

    #[test]
    fn colliding_names_all_get_a_hash() {
        let mut catalog = Catalog::new([unprefixed("one"), unprefixed("two")]);
        catalog.replace_server(&"one".into(), definitions(&["search", "read"]));
        assert_eq!(names(&catalog), ["search", "read"]);

        let replaced = catalog.replace_server(&"two".into(), definitions(&["search"]));
        assert_eq!(replaced.renamed, BTreeSet::from(["one".into()]));
        assert!(catalog.resolve("search").is_none(), "it could mean either");
        let given = names(&catalog);
        assert!(given[0].starts_with("search_") && given[2].starts_with("search_"));
        assert_ne!(given[0], given[2]);

        let replaced = catalog.replace_server(&"two".into(), definitions(&["find"]));
        assert_eq!(replaced.renamed, BTreeSet::from(["one".into()]));
        assert_eq!(names(&catalog), ["search", "read", "find"]);
    }

    #[test]
    fn two_spellings_of_one_name_in_a_server_stay_apart() {
        let mut catalog = Catalog::new([CatalogServer::named("s")]);
        catalog.replace_server(&"s".into(), definitions(&["get-item", "get_item", "s"]));
        let given = names(&catalog);
        assert!(given[0].starts_with("s_get_item_") && given[1].starts_with("s_get_item_"));
        assert_eq!(catalog.resolve(given[1]).unwrap().id.tool.as_ref(), "get_item");
    }

    #[test]
    fn a_doubled_prefix_goes_where_nothing_collides_and_the_old_name_still_resolves() {
        let mut catalog = Catalog::new(["git", "x"].map(CatalogServer::named));
        catalog.replace_server(&"git".into(), definitions(&["git_commit", "git_add", "log"]));
        assert_eq!(names(&catalog), ["git_commit", "git_add", "git_log"]);
        assert_eq!(catalog.resolve("git_commit").unwrap().id.tool.as_ref(), "git_commit");
        assert_eq!(catalog.resolve_doubled("git_git_commit").unwrap().name.as_str(), "git_commit");
        for name in ["git_commit", "git_log", "git_git_log"] {
            assert!(catalog.resolve_doubled(name).is_none(), "{name}");
        }
        // Another tool of the server has that name by right.
        catalog.replace_server(&"git".into(), definitions(&["git_commit", "git_add", "commit"]));
        assert_eq!(names(&catalog), ["git_git_commit", "git_add", "git_commit"]);
        assert_eq!(catalog.resolve("git_commit").unwrap().id.tool.as_ref(), "commit");
        // Of another server, which comes and goes: nobody gets the name.
        catalog.replace_server(&"git".into(), definitions(&["git_commit"]));
        assert!(catalog.add_server(unprefixed("bare")));
        let replaced = catalog.replace_server(&"bare".into(), definitions(&["git_commit"]));
        assert_eq!(replaced.renamed, BTreeSet::from(["git".into()]));
        let given = names(&catalog);
        assert!(given[0] == "git_git_commit" && given[1].starts_with("git_commit_"), "{given:?}");
        assert!(catalog.resolve("git_commit").is_none());
        catalog.remove_server(&"bare".into());
        assert_eq!(names(&catalog), ["git_commit"]);
        assert_eq!(catalog.len(), 1);
    }

    #[test]
    fn the_own_name_of_a_tool_resolves_if_it_can_mean_nothing_else() {
        let mut catalog = Catalog::new(["tracker", "mail", "evil"].map(CatalogServer::named));
        catalog.replace_server(&"tracker".into(), definitions(&["create_issue", "search"]));
        catalog.replace_server(&"mail".into(), definitions(&["search"]));
        catalog.replace_server(&"evil".into(), definitions(&["mail_send", "search_tools"]));
        assert_eq!(
            catalog.resolve_own("create_issue").unwrap().name.as_str(),
            "tracker_create_issue"
        );
        assert!(catalog.resolve("create_issue").is_none());
        for (name, why) in [
            ("search", "two servers have it"),
            ("mail_send", "it may be a tool that mail lists later"),
            ("search_tools", "it is a meta-tool"),
            ("absent", "nobody has it"),
        ] {
            assert!(catalog.resolve_own(name).is_none(), "{why}");
        }
    }

    #[test]
    fn a_name_that_imitates_a_hashed_name_replaces_no_tool() {
        let mut catalog = Catalog::new([unprefixed("a"), unprefixed("b"), unprefixed("evil")]);
        catalog.replace_server(&"a".into(), definitions(&["pay"]));
        catalog.replace_server(&"b".into(), definitions(&["pay"]));
        let victim = names(&catalog)[0].to_owned();
        catalog.replace_server(&"evil".into(), definitions(&[&victim]));
        assert_eq!(catalog.resolve(&victim).unwrap().id.server.as_str(), "a");
        assert_eq!(catalog.len(), 3);
    }

    #[test]
    fn the_same_content_changes_nothing() {
        let mut catalog = Catalog::new([CatalogServer::named("s")]);
        assert!(catalog.replace_server(&"s".into(), definitions(&["a"])).changed);
        assert!(!catalog.replace_server(&"s".into(), definitions(&["a"])).changed);
        assert!(!catalog.replace_server(&"unknown".into(), definitions(&["a"])).changed);
    }

    #[test]
    fn servers_come_and_go() {
        let mut catalog = Catalog::new(["a", "b"].map(CatalogServer::named));
        assert!(catalog.add_server(unprefixed("c")));
        assert!(!catalog.add_server(CatalogServer::named("a")), "the name is taken");
        for server in ["a", "b", "c"] {
            catalog.replace_server(&server.into(), definitions(&["run"]));
        }
        assert_eq!(names(&catalog), ["a_run", "b_run", "run"]);
        catalog.remove_server(&"a".into());
        assert_eq!(names(&catalog), ["b_run", "run"]);
        assert_eq!(catalog.resolve("run").unwrap().id.server.as_str(), "c");
        assert!(catalog.server("a").is_none() && catalog.resolve("a_run").is_none());
        catalog.replace_server(&"c".into(), definitions(&["walk"]));
        assert_eq!(names(&catalog), ["b_run", "walk"]);
        assert_eq!(catalog.remove_server(&"a".into()), Replaced::default());
    }

    #[test]
    fn a_name_shows_which_servers_may_own_it() {
        assert!(CatalogServer::named("my-crm").may_own("my_crm_find"));
        assert!(!CatalogServer::named("my-crm").may_own("my_crmfind"));
        assert!(CatalogServer::named("1st").may_own("_1st_find"));
        assert!(!unprefixed("crm").may_own("crm_find"));
    }

    /// The shapes that real servers bring, in the numbers seen in the wild: 51 names that collide
    /// when nothing is prefixed, 11 that overflow when all are.
    #[test]
    fn fifty_one_collisions_and_eleven_overflows() {
        let shared: Vec<String> = (0..51).map(|index| format!("search_{index}")).collect();
        let shared: Vec<&str> = shared.iter().map(String::as_str).collect();
        let mut catalog = Catalog::new([unprefixed("left"), unprefixed("right")]);
        catalog.replace_server(&"left".into(), definitions(&shared));
        catalog.replace_server(&"right".into(), definitions(&shared));
        let given: HashSet<&str> = names(&catalog).into_iter().collect();
        assert_eq!(given.len(), 102);
        assert!(given.iter().all(|name| name.len() <= 64));

        let server = "a-server-with-quite-a-long-name";
        let long: Vec<String> = (0..11)
            .map(|index| format!("and-a-tool-whose-name-goes-on-and-on-{index:02}"))
            .collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        let mut catalog = Catalog::new([CatalogServer::named(server)]);
        catalog.replace_server(&server.into(), definitions(&long));
        let given: HashSet<&str> = names(&catalog).into_iter().collect();
        assert_eq!(given.len(), 11);
        assert!(given.iter().all(|name| name.len() == 64), "{given:?}");
    }

    proptest! {
        /// Names depend on the current servers, not on their order or on earlier servers.
        #[test]
        fn names_do_not_depend_on_history(
            steps in proptest::collection::vec((0..3_usize, proptest::collection::vec("[ab_-]{1,4}", 0..5)), 1..12)
        ) {
            let servers = ["a", "a_b", "b"];
            let mut grown = Catalog::new(servers.map(CatalogServer::named));
            let mut last: HashMap<usize, Vec<String>> = HashMap::new();
            for (server, mut tools) in steps {
                tools.sort();
                tools.dedup();
                let wanted = tools.iter().map(|name| definition(name)).collect();
                grown.replace_server(&servers[server].into(), wanted);
                last.insert(server, tools);
            }
            let mut fresh = Catalog::new(servers.map(CatalogServer::named));
            for server in [2, 0, 1] {
                if let Some(tools) = last.get(&server) {
                    let wanted = tools.iter().map(|name| definition(name)).collect();
                    fresh.replace_server(&servers[server].into(), wanted);
                }
            }
            prop_assert_eq!(names(&grown), names(&fresh));
            for tool in grown.tools() {
                prop_assert_eq!(&grown.resolve(tool.name.as_str()).unwrap().id, &tool.id);
            }
            prop_assert_eq!(grown.len(), grown.tools().count());
        }
    }
}
