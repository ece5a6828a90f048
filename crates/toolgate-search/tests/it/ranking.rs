use toolgate_search::{
    Query, Recall, SearchIndex, ServerText, StrategyName, ToolKey, ToolText, UsageMemory, is_weak,
};

use crate::catalogue::{Server, Tool, found, index_of, index_ranked_by, keys};

fn catalogue() -> SearchIndex {
    ranked_by(StrategyName::default())
}

fn ranked_by(strategy: StrategyName) -> SearchIndex {
    let servers = [
        Server::new(
            "github",
            "Repositories, pull requests and issues",
            &[
                ("create_issue", "Open a new issue in a repository"),
                ("list_issues", "List the issues of a repository"),
                ("listIssueComments", "List what was said on an issue"),
                ("get_job_logs", "Download the logs of a workflow job"),
            ],
        ),
        Server::new(
            "tracker",
            "Bugs and milestones",
            &[
                ("create_issue", "Open a new issue in a repository"),
                ("whoami", "The account that is signed in"),
                ("search", "Search for anything"),
            ],
        ),
        Server::new(
            "mcp-server-wetter",
            "天气服务",
            &[("forecast", "查询城市的天气预报"), ("warnings", "Unwetter für Städte und Länder")],
        ),
    ];
    index_ranked_by(strategy, &servers)
}

fn search(text: &str) -> Vec<String> {
    let hits = found(&catalogue(), &Query::new(text, 5));
    keys(&hits).into_iter().map(str::to_owned).collect()
}

#[test]
fn the_whole_name_comes_first_in_any_spelling() {
    for spelling in [
        "list_issues",
        "listIssues",
        "LIST ISSUES",
        "list-issues",
        "github_list_issues",
        "github.listIssues",
        "github list issues",
        "mcp__github__list_issues",
        "listissues",
    ] {
        assert_eq!(search(spelling)[0], "github_list_issues", "{spelling}");
    }
    assert_eq!(search("tracker/create_issue")[0], "tracker_create_issue");
    assert_eq!(search("who am i")[0], "tracker_whoami");
}

#[test]
fn a_name_inside_a_sentence_comes_first() {
    let hits = search("call `listIssueComments` to list the issues of a repository");
    assert_eq!(hits[0], "github_listIssueComments");
}

#[test]
fn all_tools_of_an_exact_name_come_before_others() {
    assert_eq!(search("create issue")[..2], ["github_create_issue", "tracker_create_issue"]);
}

#[test]
fn a_word_that_names_a_server_is_a_hint_and_not_a_filter() {
    assert_eq!(search("open a new issue")[0], "github_create_issue");
    let hits = search("open a new issue in tracker");
    assert_eq!(hits[0], "tracker_create_issue");
    assert!(hits.contains(&"github_create_issue".to_owned()));
}

#[test]
fn a_server_is_named_without_what_all_servers_are_called() {
    let servers = ["mcp-server-alpha", "mcp-server-beta", "gamma"]
        .map(|name| Server::new(name, "", &[("send", "Send a message")]));
    let index = index_of(&servers);
    let hits = index.search(&Query::new("send something with beta", 5)).unwrap();
    assert_eq!(keys(&hits)[0], "mcp-server-beta_send");
}

#[test]
fn a_hint_moves_tools_up_and_brings_none_in() {
    let index = catalogue();
    let query = Query::new("open a new issue", 10);
    let plain = index.search(&query).unwrap();
    let hinted = index.search(&query.with_hint("bugs, milestones")).unwrap();
    assert_eq!(keys(&plain)[0], "github_create_issue");
    assert_eq!(keys(&hinted)[0], "tracker_create_issue");
    let mut sorted = [keys(&plain), keys(&hinted)];
    for keys in &mut sorted {
        keys.sort_unstable();
    }
    assert_eq!(sorted[0], sorted[1]);
}

#[test]
fn the_description_of_a_server_finds_its_tools() {
    let hits = search("milestones");
    assert_eq!(hits.len(), 3);
    assert!(hits.iter().all(|key| key.starts_with("tracker_")));
}

#[test]
fn a_filter_leaves_out_other_servers_even_by_name() {
    let index = catalogue();
    let query = Query::new("github_create_issue", 10);
    let hits = index.search(&query.in_servers(&["tracker", "nobody"])).unwrap();
    assert_eq!(keys(&hits)[0], "tracker_create_issue");
    assert!(keys(&hits).iter().all(|key| key.starts_with("tracker_")));
    assert!(index.search(&query.in_servers(&[])).unwrap().is_empty());
}

#[test]
fn inflections_and_accents_match() {
    assert_eq!(search("downloading a log")[0], "github_get_job_logs");
    assert_eq!(search("stadte")[0], "mcp-server-wetter_warnings");
    assert_eq!(search("天气预报")[0], "mcp-server-wetter_forecast");
}

#[test]
fn parameters_and_their_values_are_found() {
    let mut server = Server::new("media", "", &[("convert", "Change a file"), ("play", "")]);
    let values = vec!["flac".to_owned(), "opus".to_owned()];
    server.tools[0].parameters =
        vec![("outputFormat".to_owned(), "Codec of the result".to_owned(), values)];
    server.tools.push(Tool { name: "stop".to_owned(), ..Tool::default() });
    let index = index_of(&[server]);
    for text in ["output format", "codec", "opus"] {
        assert_eq!(keys(&index.search(&Query::new(text, 5)).unwrap()), ["media_convert"], "{text}");
    }
}

#[test]
fn titles_count_and_a_key_counts_once() {
    let mut index = SearchIndex::new();
    let text = ToolText { name: "x1", title: Some("Weather radar"), ..ToolText::default() };
    let other = ToolText { name: "x2", description: "Weather", ..ToolText::default() };
    let key = ToolKey::from("x1");
    index.replace_server("s", ServerText::default(), &[(key.clone(), text), (key, other)]);
    assert_eq!(index.tool_count(), 1);
    assert_eq!(keys(&index.search(&Query::new("radar", 5)).unwrap()), ["x1"]);
}

#[test]
fn no_match_and_no_words_give_nothing() {
    for text in ["", "   ", "zqxwvk", "?!", "the of and"] {
        assert!(search(text).is_empty(), "{text:?}");
    }
    assert!(catalogue().search(&Query::new("issue", 0)).unwrap().is_empty());
    assert!(SearchIndex::new().search(&Query::new("issue", 5)).unwrap().is_empty());
}

#[test]
fn a_weak_match_is_told_from_a_good_one() {
    let index = catalogue();
    let weak = |text| is_weak(&index.search(&Query::new(text, 5)).unwrap());
    for text in ["order a pizza with ham", "book a flight to Lisbon", "play some music"] {
        assert!(weak(text) || search(text).is_empty(), "{text}: {:?}", search(text));
    }
    for text in ["open a new issue", "list_issues", "logs of a job", "whoami", "天气预报"] {
        assert!(!weak(text), "{text}");
    }
}

#[test]
fn each_strategy_ranks_in_its_own_way() {
    let regex = ranked_by(StrategyName::Regex);
    let hits = regex.search(&Query::new("^list.*s$", 5)).unwrap();
    assert_eq!(keys(&hits), ["github_listIssueComments", "github_list_issues"]);
    assert!(regex.search(&Query::new("issue(", 5)).is_err());
    let keyword = ranked_by(StrategyName::Keyword);
    let hits = keyword.search(&Query::new("omment", 5)).unwrap();
    assert_eq!(keys(&hits), ["github_listIssueComments"]);
}

#[test]
fn a_tool_named_in_the_query_ranks_before_useful_tools() {
    let mut memory = UsageMemory::default();
    let key = ToolKey::from("github_get_job_logs");
    for query in ["call list_issues", "list_issues of a repository", "list issues and logs"] {
        memory.record(query, &key);
    }
    let recall = Recall { memory: &memory, tools: &(), caller: "" };
    for strategy in [StrategyName::Hybrid, StrategyName::Bm25] {
        let index = ranked_by(strategy);
        let ask = |text| -> Vec<ToolKey> {
            let query = Query::new(text, 5);
            let hits = index.search_remembering(&query, &recall).unwrap();
            hits.into_iter().map(|hit| hit.key).collect()
        };
        assert_eq!(ask("call list_issues")[0].as_str(), "github_list_issues", "{strategy}");
        let hits = ask("issues of a repository and their logs");
        assert_eq!(hits[0].as_str(), "github_get_job_logs", "{strategy}: {hits:?}");
    }
    let (regex, query) = (ranked_by(StrategyName::Regex), Query::new("list_issues", 5));
    let remembering = regex.search_remembering(&query, &recall).unwrap();
    assert_eq!(remembering, regex.search(&query).unwrap(), "a pattern has no usage memory");
}
