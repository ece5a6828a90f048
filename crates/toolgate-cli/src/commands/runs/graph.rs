//! Draws which results can reach which arguments in the script of a run.

use toolgate_host::{GraphCall, GraphEdge, RunGraph, one_line};

/// The width of a terminal that everybody has.
const WIDTH: usize = 80;
/// Longer names are cut, so that what follows fits on the line.
const MAX_TOOL: usize = 40;
const MAX_NAME: usize = 24;
/// More are counted, not drawn.
const MOST_DRAWN: usize = 100;

/// The graph of a run, if it is readable.
pub(super) fn read(graph: Option<&str>) -> Option<RunGraph> {
    let graph: RunGraph = serde_json::from_str(graph?).ok()?;
    (!graph.flows.is_empty()).then_some(graph)
}

/// One paragraph for each call whose result goes somewhere, with the arguments that it reaches.
pub(super) fn draw(graph: &RunGraph) -> String {
    let drawn = &graph.flows[..graph.flows.len().min(MOST_DRAWN)];
    let mut lines: Vec<String> = Vec::new();
    let mut last: Option<&GraphCall> = None;
    for edge in drawn {
        if last != Some(&edge.from) {
            lines.push(format!("  result of {}", named(&edge.from)));
            last = Some(&edge.from);
        }
        lines.extend(arrow(edge));
    }
    let left_out = graph.flows.len() - drawn.len() + graph.left_out;
    if left_out > 0 {
        lines.push(format!("  and {left_out} more"));
    }
    lines.join("\n")
}

/// The end of a flow. What does not fit into the line follows in the next one.
fn arrow(edge: &GraphEdge) -> Vec<String> {
    let argument = edge.argument.as_deref().map(|name| one_line(name, MAX_NAME));
    let end = match (edge.is_choice, argument) {
        (false, Some(argument)) => format!("argument {argument} of {}", named(&edge.to)),
        (false, None) => format!("any argument of {}", named(&edge.to)),
        (true, Some(argument)) => {
            format!("decides on argument {argument} of {}", named(&edge.to))
        }
        (true, None) => format!("decides on {}", named(&edge.to)),
    };
    let mut lines = vec![format!("    ─▶ {end}")];
    if edge.through.is_empty() {
        return lines;
    }
    let names: Vec<String> = edge.through.iter().map(|name| one_line(name, MAX_NAME)).collect();
    let way = format!("by way of {}", names.join(", "));
    match lines.first_mut() {
        Some(line) if line.chars().count() + way.chars().count() + 2 <= WIDTH => {
            line.push_str(", ");
            line.push_str(&way);
        }
        _ => lines.push(format!("       {}", one_line(&way, WIDTH - 8))),
    }
    lines
}

fn named(call: &GraphCall) -> String {
    let tool = call.tool.as_deref().map(|tool| one_line(tool, MAX_TOOL));
    let tool = tool.unwrap_or_else(|| "a chosen tool".to_owned());
    format!("{tool} (line {})", call.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: u32, tool: &str) -> GraphCall {
        GraphCall { line, tool: (!tool.is_empty()).then(|| tool.to_owned()) }
    }

    fn edge(from: &GraphCall, to: GraphCall, argument: &str, through: &[&str]) -> GraphEdge {
        let argument = (!argument.is_empty()).then(|| argument.to_owned());
        let through = through.iter().map(|name| (*name).to_owned()).collect();
        GraphEdge { from: from.clone(), to, argument, is_choice: false, through }
    }

    #[test]
    fn results_are_drawn_with_the_arguments_that_they_reach() {
        let customer = call(1, "crm_get_customer");
        let decided = edge(&customer, call(9, "mail_send"), "", &["customer"]);
        let graph = RunGraph {
            flows: vec![
                edge(&customer, call(2, "weather_get"), "city", &["customer"]),
                edge(
                    &customer,
                    call(3, "crm_of_a_server_with_a_long_name_add_note"),
                    "text",
                    &["customer", "rows", "summary"],
                ),
                GraphEdge { is_choice: true, ..decided.clone() },
                GraphEdge { is_choice: true, argument: Some("to".to_owned()), ..decided },
                edge(&call(2, "weather_get"), call(7, ""), "", &[]),
            ],
            left_out: 3,
        };
        insta::assert_snapshot!(draw(&graph), @"
        result of crm_get_customer (line 1)
          ─▶ argument city of weather_get (line 2), by way of customer
          ─▶ argument text of crm_of_a_server_with_a_long_name_add_no… (line 3)
             by way of customer, rows, summary
          ─▶ decides on mail_send (line 9), by way of customer
          ─▶ decides on argument to of mail_send (line 9), by way of customer
        result of weather_get (line 2)
          ─▶ any argument of a chosen tool (line 7)
        and 3 more
        ");
    }

    #[test]
    fn hostile_names_stay_within_the_width_and_on_their_lines() {
        let long = "\u{202e}x\n".repeat(500);
        let from = call(u32::MAX, &long);
        let flows = vec![edge(&from, from.clone(), &long, &[&long, &long, &long]); 300];
        let drawn = draw(&RunGraph { flows, left_out: 0 });
        assert!(drawn.ends_with("  and 200 more"), "{drawn}");
        assert!(!drawn.contains('\u{202e}'), "{drawn}");
        let widest = drawn.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 110), "{widest:?}");
        assert_eq!(read(Some("{\"flows\":1}")), None);
    }
}
