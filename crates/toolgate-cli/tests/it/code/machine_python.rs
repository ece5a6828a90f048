//! Scripts in the Python of the machine, over MCP.

use serde_json::{Value, json};

use crate::{
    fixtures::kit,
    support::{Gateway, Workplace, call, entry, list, text},
};

async fn connect() -> (Workplace, Gateway) {
    let config =
        json!({ "mcpServers": { "kit": entry(&kit()) }, "codeMode": { "python": "auto" } });
    let workplace = Workplace::new(&config);
    let gateway = workplace.connect(&["--mode", "stable"]).await;
    (workplace, gateway)
}

async fn run(gateway: &mut Gateway, code: &str) -> Value {
    call(gateway, "run_code", json!({ "code": code, "language": "python" })).await
}

#[tokio::test]
async fn the_python_of_the_machine_runs_scripts_and_says_so() {
    let (workplace, mut gateway) = connect().await;
    let tools = list(&mut gateway).await;
    let run_code = tools.iter().find(|tool| tool["name"] == "run_code").unwrap();
    let described = run_code["description"].as_str().unwrap();
    assert!(described.contains("Python (CPython 3."), "{described}");
    let engines = workplace.run(&["engines", "--json"]).await.json();
    assert_eq!(engines["engines"][1]["language"], "python");
    assert!(engines["engines"][1]["engine"].as_str().unwrap().starts_with("CPython 3."));
    let doctor = workplace.run(&["doctor", "--json"]).await.json();
    assert_eq!(doctor["engines"], engines["engines"]);

    // What the embedded one cannot do.
    let code = "
import asyncio, decimal, sys
from dataclasses import dataclass
@dataclass(order=True)
class Price:
    amount: decimal.Decimal
    def __add__(self, other): return Price(self.amount + other.amount)
def counted():
    n = 0
    while True:
        yield (n := n + 1)
async with asyncio.timeout(60):
    echoes = await asyncio.gather(*(kit_echo(message=str(n)) for n, _ in zip(counted(), range(3))))
print(sys.implementation.name, max(Price(decimal.Decimal('1.10')), Price(decimal.Decimal('0.9'))))
[echo['message'] for echo in echoes] + [str((Price(decimal.Decimal('0.1')) + Price(decimal.Decimal('0.2'))).amount)]
";
    let result = run(&mut gateway, code).await;
    let shown = text(&result);
    assert!(shown.contains("cpython Price(amount=Decimal('1.10'))"), "{shown}");
    assert!(shown.contains(r#"["1","2","3","0.3"]"#), "{shown}");

    let failed =
        run(&mut gateway, "x = 1\ntry:\n    y = {}['k']\nfinally:\n    x = 2\n    x = 3\n").await;
    assert_eq!(failed["isError"], true, "{failed}");
    let shown = text(&failed);
    assert!(shown.contains("KeyError: 'k'"), "{shown}");
    assert!(shown.contains("at line 3, column 9: y = {}['k']"), "{shown}");
}

#[tokio::test]
async fn an_embedded_python_is_what_the_configuration_chooses() {
    let config = json!({ "mcpServers": {}, "codeMode": { "python": "monty" } });
    let workplace = Workplace::new(&config);
    for command in ["engines", "doctor"] {
        let shown = workplace.run(&[command]).await.stdout;
        assert!(shown.contains("codeMode.python is `monty`"), "{command}: {shown}");
    }
}

#[tokio::test]
async fn one_dictionary_has_all_arguments_in_both_pythons() {
    for engine in ["auto", "monty"] {
        let config =
            json!({ "mcpServers": { "kit": entry(&kit()) }, "codeMode": { "python": engine } });
        let workplace = Workplace::new(&config);
        let mut gateway = workplace.connect(&["--mode", "stable"]).await;
        for code in [
            "await kit_add({'a': 2, 'b': 3})",
            "args = {'a': 2, 'b': 3}\nawait kit_add(args)",
            "import json\nargs = json.loads('{\"a\": 2, \"b\": 3}')\nawait kit_add(args)",
        ] {
            let result = run(&mut gateway, code).await;
            let shown = text(&result);
            assert!(shown.contains(r#"{"sum":5}"#), "{engine}: {code}: {shown}");
        }
        let result = run(&mut gateway, "await kit_add({'a': 'x', 'b': 3})").await;
        let refused = text(&result);
        assert!(refused.contains("`a` takes a number, not a string"), "{engine}: {refused}");
    }
}
