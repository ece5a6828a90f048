use proptest::prelude::*;

use super::*;

fn kinds(text: &str) -> Vec<(String, TermKind)> {
    let mut terms = Vec::new();
    for_each_term(text, 1_000, &mut |term, kind| terms.push((term.to_owned(), kind)));
    terms
}

/// The terms without stop words, as a line; joined ones in brackets.
fn terms(text: &str) -> String {
    let shown = kinds(text).into_iter().filter_map(|(term, kind)| match kind {
        TermKind::Word => Some(term),
        TermKind::Joined => Some(format!("({term})")),
        TermKind::StopWord => None,
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn identifiers_are_split_and_short_ones_kept_whole() {
    insta::assert_snapshot!(terms("get_logs"), @"get log (getlog)");
    insta::assert_snapshot!(terms("getlogs"), @"getlog");
    insta::assert_snapshot!(terms("getHTTPResponse2"), @"get http respons 2 (gethttpresponse2)");
    insta::assert_snapshot!(terms("API-get.users"), @"api get user (apigetus)");
    insta::assert_snapshot!(terms("mcp__github__list"), @"mcp github list (mcpgithublist)");
    insta::assert_snapshot!(terms("a_very_long_name_that_nobody_types_as_one"), @"long name nobodi type one");
    insta::assert_snapshot!(terms("GitHub PostgreSQL s3 k8s"), @"git hub (github) postgr sql (postgresql) s 3 (s3) k 8 s (k8s)");
}

#[test]
fn stop_words_are_removed_from_sentences() {
    insta::assert_snapshot!(terms("Could you please show me the user's open issues?"), @"show user open issu");
    insta::assert_snapshot!(terms("I'd like what isn't here, don’t you"), @"");
    insta::assert_snapshot!(terms("e.g. real-time data. Next"), @"real time (realtim) data next");
    insta::assert_snapshot!(terms("Version 1.2.3 of 2024-05-01"), @"version 1 2 3 2024 05 01");
}

#[test]
fn stop_words_are_marked_and_not_lost() {
    assert_eq!(
        kinds("who_am_i"),
        [
            ("who".to_owned(), TermKind::StopWord),
            ("am".to_owned(), TermKind::StopWord),
            ("i".to_owned(), TermKind::StopWord),
            ("whoami".to_owned(), TermKind::Joined),
        ]
    );
}

#[test]
fn accents_width_and_invisible_characters_do_not_matter() {
    insta::assert_snapshot!(terms("Café CAFÉ cafe\u{301} ｃａｆｅ ca\u{200B}fe\u{AD}"), @"cafe cafe cafe cafe cafe");
    insta::assert_snapshot!(terms("Straße Ærø İstanbul Điện"), @"strass aero istanbul dien");
    insta::assert_snapshot!(terms("поиск файлов"), @"поиск файлов");
}

#[test]
fn scripts_without_blanks_become_pairs() {
    insta::assert_snapshot!(terms("获取热榜"), @"获取 取热 热榜");
    insta::assert_snapshot!(terms("検索する tool 猫"), @"検索 索す する tool 猫");
    insta::assert_snapshot!(terms("날씨 조회"), @"날씨 조회");
    insta::assert_snapshot!(terms("36氪新闻AI"), @"36 氪新 新闻 ai");
}

#[test]
fn words_that_are_too_long_are_left_out() {
    let blob = "x".repeat(MAX_WORD_CHARACTERS + 1);
    assert_eq!(terms(&format!("first {blob} left_{blob}_right")), "first left right");
    let edge = "x".repeat(MAX_WORD_CHARACTERS);
    assert_eq!(terms(&edge), edge);
}

#[test]
fn no_more_terms_than_asked_for() {
    for text in ["one_two three four", "一二三四五六", "a's b's c's d's"] {
        let mut count = 0;
        for_each_term(text, 2, &mut |_, _| count += 1);
        assert_eq!(count, 2, "{text}");
        for_each_term(text, 0, &mut |_, _| panic!("a term of none"));
    }
}

proptest! {
    #[test]
    fn any_text_gives_bounded_terms(text in any::<String>()) {
        for (term, _) in kinds(&text) {
            prop_assert!(!term.is_empty());
            // A letter may fold to two, and a letter is at most four bytes.
            prop_assert!(term.len() <= MAX_WORD_CHARACTERS * 8);
            prop_assert!(!term.contains(|character: char| character.is_whitespace()));
            prop_assert!(!term.contains(char::is_control));
        }
    }

    #[test]
    fn case_of_a_plain_word_does_not_matter(word in "[a-z]{1,20}") {
        prop_assert_eq!(terms(&word), terms(&word.to_uppercase()));
    }
}
