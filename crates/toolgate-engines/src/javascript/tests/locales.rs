//! Numbers, dates and texts for readers. What is expected is what ICU writes, but for the narrow
//! space before AM and PM, which is a plain one here.

use super::{assert_failures, assert_values, failure, value};
use crate::FailureKind;

#[test]
fn numbers_have_the_format_of_the_locale() {
    assert_values(&[
        ("return (1234567.891).toLocaleString()", r#""1,234,567.891""#),
        ("return (1234567.8915).toLocaleString('en-US')", r#""1,234,567.892""#),
        ("return (0).toLocaleString() + (-1234).toLocaleString()", r#""0-1,234""#),
        ("return 12345678901234567890n.toLocaleString()", r#""12,345,678,901,234,567,890""#),
        ("return (5).toLocaleString('en-US', { minimumFractionDigits: 2 })", r#""5.00""#),
        ("return (1.005).toLocaleString('en-US', { maximumFractionDigits: 2 })", r#""1.01""#),
        (
            "return (1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })",
            r#""$1,234.50""#,
        ),
        (
            "return (-1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })",
            r#""-$1,234.50""#,
        ),
        (
            "return (-5).toLocaleString('en-US', { style: 'currency', currency: 'USD', currencySign: 'accounting' })",
            r#""($5.00)""#,
        ),
        (
            "return (5000).toLocaleString('en-US', { style: 'currency', currency: 'JPY' })",
            r#""¥5,000""#,
        ),
        (
            "return (5).toLocaleString('en-US', { style: 'currency', currency: 'CHF' })",
            "\"CHF\u{a0}5.00\"",
        ),
        (
            "return (1234.5).toLocaleString('de-DE', { style: 'currency', currency: 'EUR' })",
            "\"1.234,50\u{a0}€\"",
        ),
        (
            "return (1234.5).toLocaleString('pt-BR', { style: 'currency', currency: 'BRL' })",
            "\"R$\u{a0}1.234,50\"",
        ),
        ("return (1234567.8).toLocaleString('fr-FR')", "\"1\u{202f}234\u{202f}567,8\""),
        ("return (1234567).toLocaleString('en-IN')", r#""12,34,567""#),
        (
            "return (1234).toLocaleString('es-ES') + (12345).toLocaleString('es-ES')",
            r#""123412.345""#,
        ),
        ("return (0.256).toLocaleString('en-US', { style: 'percent' })", r#""26%""#),
        (
            "return (0.2567).toLocaleString('en-US', { style: 'percent', maximumFractionDigits: 1 })",
            r#""25.7%""#,
        ),
        ("return (1234).toLocaleString('en-US', { useGrouping: false })", r#""1234""#),
        ("return (7).toLocaleString('en-US', { minimumIntegerDigits: 2 })", r#""07""#),
        (
            "return (123456).toLocaleString('en-US', { maximumSignificantDigits: 3 })",
            r#""123,000""#,
        ),
        ("return (3).toLocaleString('en-US', { signDisplay: 'always' })", r#""+3""#),
        ("return NaN.toLocaleString() + (1 / 0).toLocaleString()", r#""NaN∞""#),
        ("return (1e21).toLocaleString()", r#""1,000,000,000,000,000,000,000""#),
    ]);
}

#[test]
fn numbers_are_shortened_and_measured() {
    assert_values(&[
        (
            "return [999, 1234, 15300, 999999, 1234567, 2.5e9].map((n) => new Intl.NumberFormat('en-US', { notation: 'compact' }).format(n))",
            r#"["999","1.2K","15K","1M","1.2M","2.5B"]"#,
        ),
        (
            "return new Intl.NumberFormat('en-US', { notation: 'compact', compactDisplay: 'long' }).format(1234567)",
            r#""1.2 million""#,
        ),
        (
            "return new Intl.NumberFormat('en-US', { style: 'unit', unit: 'kilometer-per-hour' }).format(50)",
            r#""50 km/h""#,
        ),
        (
            "return new Intl.NumberFormat('en-US', { style: 'unit', unit: 'megabyte', unitDisplay: 'long' }).format(2)",
            r#""2 megabytes""#,
        ),
        ("return [1, 2].map(new Intl.NumberFormat('en-US').format)", r#"["1","2"]"#),
        (
            "return new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).formatToParts(1.5).map((p) => p.type)",
            r#"["currency","integer","decimal","fraction"]"#,
        ),
        (
            "return [1, 2, 3, 11, 21].map((n) => new Intl.PluralRules('en', { type: 'ordinal' }).select(n))",
            r#"["one","two","few","other","one"]"#,
        ),
        (
            "return [0, 1, 2].map((n) => new Intl.PluralRules('en').select(n))",
            r#"["other","one","other"]"#,
        ),
    ]);
    assert_failures(&[
        (
            "(1).toLocaleString('en-US', { style: 'currency' })",
            FailureKind::Exception,
            "TypeError: Currency code is required",
        ),
        (
            "(1).toLocaleString('not a locale')",
            FailureKind::Exception,
            "RangeError: Incorrect locale",
        ),
        (
            "(1).toLocaleString('en', { maximumFractionDigits: 500 })",
            FailureKind::Exception,
            "RangeError",
        ),
    ]);
}

/// What ICU writes in the locales that there are; `null` for what is refused.
#[test]
fn every_locale_that_there_is_is_right() {
    type Cases =
        std::collections::BTreeMap<String, std::collections::BTreeMap<String, Option<String>>>;
    let cases: Cases = serde_json::from_str(include_str!("cases/locales.json")).expect("cases");
    let mut wrong = Vec::new();
    for locale in ["en-US", "en-GB", "de-DE", "fr-FR", "es-ES", "it-IT", "pt-BR", "nl-NL"] {
        let of_locale: Vec<_> = cases.iter().map(|(it, all)| (it, all[locale].clone())).collect();
        let tried: Vec<String> = of_locale.iter().map(|(it, _)| format!("() => {it}")).collect();
        let json = value(&format!(
            "const L = '{locale}', D = new Date(Date.UTC(2026,10,6,13,5,9)); \
             return [{}].map((f) => {{ try {{ return String(f()) }} catch (e) {{ if (e.name === 'UnsupportedError') return null; throw e }} }})",
            tried.join(",\n")
        ));
        let found: Vec<Option<String>> = serde_json::from_str(&json).expect("a list");
        for ((expression, expected), found) in of_locale.into_iter().zip(found) {
            // The narrow space is a matter of taste.
            let found = found.map(|text| text.replace('\u{202f}', " "));
            if found != expected {
                wrong.push(format!("{locale} {expression}: {found:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_locales_are_an_error_that_says_what_there_is() {
    for (source, part) in [
        (
            "(1).toLocaleString('ja-JP')",
            "the locale ja-JP is not available here for numbers: there are en-US, en-GB, en-IN, de-DE",
        ),
        ("(1).toLocaleString('de-AT')", "the locale de-AT is not available here"),
        (
            "new Date(0).toLocaleDateString('ko-KR')",
            "the locale ko-KR is not available here for dates: there are en-US, en-GB, de-DE",
        ),
        (
            "new Date(0).toLocaleDateString('sv-SE', { month: 'long' })",
            "written dates of sv-SE are not available here",
        ),
        ("'a'.localeCompare('b', 'sv')", "the locale sv-SE is not available here for texts"),
        (
            "new Intl.RelativeTimeFormat('de').format(1, 'day')",
            "relative times of de-DE are not available here",
        ),
        ("(1e6).toLocaleString('de-DE', { notation: 'compact' })", "there are only those of en-US"),
        ("new Date(0).toLocaleDateString('en-US-u-ca-buddhist')", "only the Gregorian calendar"),
        ("(1).toLocaleString('en-US', { numberingSystem: 'arab' })", "only the digits 0 to 9"),
        ("new Intl.PluralRules('pl').select(2)", "the locale pl is not available here for texts"),
    ] {
        assert_failures(&[(source, FailureKind::Unsupported, part)]);
    }
    assert_values(&[
        ("return (1234.5).toLocaleString(['ja-JP', 'de'])", r#""1.234,5""#),
        ("return Intl.NumberFormat.supportedLocalesOf(['ja', 'de', 'en-GB'])", r#"["de","en-GB"]"#),
        ("return new Date(Date.UTC(2026, 0, 2)).toLocaleDateString('en-CA')", r#""2026-01-02""#),
    ]);
}

/// A moment in winter, in the zone of the format.
fn at(format: &str) -> String {
    format!("const d = new Date(Date.UTC(2026, 10, 16, 13, 5, 9)); return {format}")
}

#[test]
fn dates_have_the_format_of_the_locale() {
    for (format, expected) in [
        ("d.toLocaleString('en-US', { timeZone: 'UTC' })", "11/16/2026, 1:05:09 PM"),
        ("d.toLocaleDateString('en-US', { timeZone: 'UTC' })", "11/16/2026"),
        ("d.toLocaleTimeString('en-US', { timeZone: 'UTC' })", "1:05:09 PM"),
        ("d.toLocaleDateString('en-GB', { timeZone: 'UTC' })", "16/11/2026"),
        ("d.toLocaleDateString('de-DE', { timeZone: 'UTC' })", "16.11.2026"),
        ("d.toLocaleDateString('en-CA', { timeZone: 'UTC' })", "2026-11-16"),
        ("d.toLocaleString('sv-SE', { timeZone: 'UTC' })", "2026-11-16 13:05:09"),
        (
            "d.toLocaleDateString('en-US', { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric', timeZone: 'UTC' })",
            "Monday, November 16, 2026",
        ),
        (
            "d.toLocaleDateString('en-US', { month: 'short', day: 'numeric', timeZone: 'UTC' })",
            "Nov 16",
        ),
        (
            "d.toLocaleDateString('en-US', { month: 'long', year: 'numeric', timeZone: 'UTC' })",
            "November 2026",
        ),
        (
            "d.toLocaleDateString('en-US', { year: 'numeric', month: '2-digit', day: '2-digit', timeZone: 'UTC' })",
            "11/16/2026",
        ),
        ("d.toLocaleDateString('en-US', { weekday: 'short', timeZone: 'UTC' })", "Mon"),
        (
            "d.toLocaleDateString('de-DE', { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric', timeZone: 'UTC' })",
            "Montag, 16. November 2026",
        ),
        (
            "d.toLocaleDateString('fr-FR', { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric', timeZone: 'UTC' })",
            "lundi 16 novembre 2026",
        ),
        (
            "d.toLocaleDateString('es-ES', { dateStyle: 'full', timeZone: 'UTC' })",
            "lunes, 16 de noviembre de 2026",
        ),
        (
            "d.toLocaleDateString('en-GB', { dateStyle: 'long', timeZone: 'UTC' })",
            "16 November 2026",
        ),
        (
            "d.toLocaleTimeString('en-US', { hour: '2-digit', minute: '2-digit', timeZone: 'UTC' })",
            "01:05 PM",
        ),
        ("d.toLocaleTimeString('en-US', { hour12: false, timeZone: 'UTC' })", "13:05:09"),
        ("d.toLocaleTimeString('en-GB', { timeZone: 'UTC', timeStyle: 'short' })", "13:05"),
        (
            "new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' }).format(d)",
            "Nov 16, 2026, 1:05 PM",
        ),
        ("d.toLocaleString('en-US', { timeZone: 'America/New_York' })", "11/16/2026, 8:05:09 AM"),
        (
            "d.toLocaleString('en-US', { timeZone: 'America/Los_Angeles', timeZoneName: 'short' })",
            "11/16/2026, 5:05:09 AM PST",
        ),
        ("d.toLocaleString('en-US', { timeZone: 'Asia/Kolkata' })", "11/16/2026, 6:35:09 PM"),
        ("d.toLocaleTimeString('en-GB', { timeZone: '+05:45' })", "18:50:09"),
        ("Intl.DateTimeFormat('en-US', { timeZone: 'UTC' }).resolvedOptions().timeZone", "UTC"),
        (
            "new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', hour: 'numeric' }).formatToParts(d).map((p) => p.type).join()",
            "hour,literal,dayPeriod",
        ),
        ("new Date(NaN).toLocaleDateString()", "Invalid Date"),
    ] {
        assert_values(&[(&at(format), &format!("\"{expected}\""))]);
    }
    assert_failures(&[
        (
            "new Date().toLocaleString('en-US', { timeZone: 'Mars/Base_1' })",
            FailureKind::Unsupported,
            "give its offset",
        ),
        (
            "new Date().toLocaleString('en-US', { timeZone: 'nonsense' })",
            FailureKind::Exception,
            "RangeError",
        ),
        (
            "new Intl.DateTimeFormat('en-US').format(new Date(NaN))",
            FailureKind::Exception,
            "RangeError",
        ),
    ]);
}

#[test]
fn summer_time_begins_and_ends_on_its_days() {
    for (zone, before, after, change) in [
        ("America/New_York", "1:59", "3:00", "2026, 2, 8, 7"),
        ("America/New_York", "1:59", "1:00", "2026, 10, 1, 6"),
        ("Europe/Berlin", "1:59", "3:00", "2026, 2, 29, 1"),
        ("Europe/Berlin", "2:59", "2:00", "2026, 9, 25, 1"),
        ("Australia/Sydney", "1:59", "3:00", "2026, 9, 3, 16"),
        ("Australia/Sydney", "2:59", "2:00", "2026, 3, 4, 16"),
        ("Pacific/Auckland", "1:59", "3:00", "2026, 8, 26, 14"),
        ("Pacific/Auckland", "2:59", "2:00", "2026, 3, 4, 14"),
    ] {
        let source = format!(
            "const t = Date.UTC({change}); const f = new Intl.DateTimeFormat('en-US', {{ timeZone: '{zone}', hour: 'numeric', minute: '2-digit', hour12: true }}); return [t - 60000, t].map((m) => f.format(m).split(' ')[0])"
        );
        assert_values(&[(&source, &format!("[\"{before}\",\"{after}\"]"))]);
    }
}

#[test]
fn texts_are_sorted_as_people_sort() {
    assert_values(&[
        (
            "return ['b', 'a', 'B', 'ä', 'Z', 'z', '10', '9', 'é', 'e', ' ', '_'].sort((x, y) => x.localeCompare(y)).join('')",
            r#"" _109aäbBeézZ""#,
        ),
        (
            "return ['item 10', 'item 9', 'Item 1'].sort(new Intl.Collator(undefined, { numeric: true }).compare)",
            r#"["Item 1","item 9","item 10"]"#,
        ),
        (
            "return ['a'.localeCompare('A', undefined, { sensitivity: 'base' }), 'a'.localeCompare('b'), 'b'.localeCompare('a'), 'a'.localeCompare('a')]",
            "[0,-1,1,0]",
        ),
        ("return 'résumé'.localeCompare('resume', 'en', { sensitivity: 'base' })", "0"),
        ("return 'a10'.localeCompare('a9', undefined, { numeric: true })", "1"),
        (
            "return new Intl.ListFormat('en', { type: 'conjunction' }).format(['a', 'b', 'c'])",
            r#""a, b, and c""#,
        ),
        (
            "return new Intl.ListFormat('en', { type: 'disjunction' }).format(['a', 'b'])",
            r#""a or b""#,
        ),
        (
            "return [-1, 0, 1, 5].map((n) => new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(n, 'day'))",
            r#"["yesterday","today","tomorrow","in 5 days"]"#,
        ),
        ("return new Intl.RelativeTimeFormat('en').format(-1, 'hours')", r#""1 hour ago""#),
    ]);
}

#[test]
fn old_dates_are_refused_where_the_clocks_had_other_rules() {
    for (zone, old, year, since) in [
        ("America/New_York", "2005-11-01T12:00:00Z", 2005, "2006-11-06"),
        ("America/Sao_Paulo", "2018-12-15T12:00:00Z", 2018, "2019-02-18"),
        ("Europe/Berlin", "1979-07-01T12:00:00Z", 1979, "1995-10-30"),
    ] {
        let source = |date: &str| {
            format!("return new Date('{date}').toLocaleString('en-US', {{ timeZone: '{zone}' }})")
        };
        let failure = failure(&source(old));
        let expected = format!(
            "RangeError: the clocks of {zone} in {year} are not known here, only those since {since}: give \
             the offset instead"
        );
        assert!(failure.message.starts_with(&expected), "{}", failure.message);
        assert!(!value(&source(&format!("{since}T00:00:00Z"))).is_empty(), "{zone}");
    }
}
