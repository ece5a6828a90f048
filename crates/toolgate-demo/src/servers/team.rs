//! `team`: who works where, what each level may spend, and what everybody spent.
//!
//! The example behind it: "who of engineering went over their travel budget in the third
//! quarter?" needs a team of 20, their 2,000 expenses and a budget for each level, to give three
//! names. A model that reads all of it pays for all of it; a script reads it and prints the names.

mod expenses;

use serde_json::{Value, json};

use crate::error::Failure;
use crate::field::{
    Field, Object, amount, choice, count, date, flag, integer, object, text, texts,
};
use crate::spec::{Era, Spec};
use crate::store::{Read, Store};
use crate::table::{Source, Table};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const DEPARTMENTS: &[&str] = &["engineering", "sales", "design", "finance"];
const LEVELS: &[&str] = &["junior", "mid", "senior", "staff", "principal"];
const QUARTERS: &[&str] = &["Q1", "Q2", "Q3", "Q4"];
const CATEGORIES: &[&str] = &["travel", "meals", "software", "equipment", "office", "training"];

const MEMBERS: &str = "\
ENG-001 | Amara Okafor      | amara.okafor@example.com      | engineering | principal | Platform lead            | Lisbon    | 2017-03-01 |
ENG-002 | Jonas Lindqvist   | jonas.lindqvist@example.com   | engineering | staff     | Storage engineer         | Gothenburg| 2018-06-18 | ENG-001
ENG-003 | Priya Raman       | priya.raman@example.com       | engineering | senior    | Payments engineer        | Chennai   | 2019-01-14 | ENG-001
ENG-004 | Mateo Fuentes     | mateo.fuentes@example.com     | engineering | mid       | Frontend engineer        | Valencia  | 2022-09-05 | ENG-003
ENG-005 | Hana Kobayashi    | hana.kobayashi@example.com    | engineering | senior    | Search engineer          | Osaka     | 2020-02-10 | ENG-002
ENG-006 | Elliot Marsh      | elliot.marsh@example.com      | engineering | junior    | Backend engineer         | Leeds     | 2025-07-01 | ENG-005
ENG-007 | Zofia Nowak       | zofia.nowak@example.com       | engineering | mid       | Reliability engineer     | Krakow    | 2021-11-22 | ENG-002
ENG-008 | Tariq Haddad      | tariq.haddad@example.com      | engineering | staff     | Security engineer        | Amman     | 2018-10-08 | ENG-001
ENG-009 | Ingrid Solberg    | ingrid.solberg@example.com    | engineering | senior    | Data engineer            | Bergen    | 2019-08-26 | ENG-002
ENG-010 | Caleb Osei        | caleb.osei@example.com        | engineering | junior    | Mobile engineer          | Accra     | 2025-02-17 | ENG-009
ENG-011 | Lucia Moretti     | lucia.moretti@example.com     | engineering | mid       | Mobile engineer          | Turin     | 2022-04-04 | ENG-009
ENG-012 | Dmitri Petrov     | dmitri.petrov@example.com     | engineering | senior    | Infrastructure engineer  | Sofia     | 2020-09-14 | ENG-008
ENG-013 | Noor Rahman       | noor.rahman@example.com       | engineering | mid       | Backend engineer         | Dhaka     | 2023-01-09 | ENG-003
ENG-014 | Felix Brandt      | felix.brandt@example.com      | engineering | junior    | Frontend engineer        | Graz      | 2026-01-05 | ENG-004
ENG-015 | Siobhan Kelly     | siobhan.kelly@example.com     | engineering | principal | Architecture lead        | Galway    | 2016-05-23 | ENG-001
ENG-016 | Wei Zhang         | wei.zhang@example.com         | engineering | senior    | Machine learning engineer| Singapore | 2021-03-15 | ENG-015
ENG-017 | Beatriz Almeida   | beatriz.almeida@example.com   | engineering | mid       | Test engineer            | Porto     | 2022-10-31 | ENG-015
ENG-018 | Omar Farouk       | omar.farouk@example.com       | engineering | staff     | Network engineer         | Cairo     | 2018-12-03 | ENG-015
ENG-019 | Grace Adeyemi     | grace.adeyemi@example.com     | engineering | junior    | Reliability engineer     | Lagos     | 2025-09-29 | ENG-018
ENG-020 | Viktor Hansen     | viktor.hansen@example.com     | engineering | mid       | Build engineer           | Aarhus    | 2023-06-12 | ENG-018
SAL-001 | Renata Vargas     | renata.vargas@example.com     | sales       | staff     | Head of sales            | Bogota    | 2018-02-05 |
SAL-002 | Tobias Engel      | tobias.engel@example.com      | sales       | senior    | Account executive        | Hamburg   | 2020-08-17 | SAL-001
SAL-003 | Mei Tanaka        | mei.tanaka@example.com        | sales       | mid       | Account executive        | Tokyo     | 2022-03-28 | SAL-001
DES-001 | Clara Dubois      | clara.dubois@example.com      | design      | senior    | Design lead              | Lyon      | 2019-04-15 |
DES-002 | Samuel Ortiz      | samuel.ortiz@example.com      | design      | mid       | Product designer         | Quito     | 2021-07-19 | DES-001
FIN-001 | Margaret Doyle    | margaret.doyle@example.com    | finance     | staff     | Controller               | Cork      | 2017-11-13 |
FIN-002 | Ravi Menon        | ravi.menon@example.com        | finance     | mid       | Accountant               | Kochi     | 2022-05-02 | FIN-001
";

/// Limits are for a quarter, in USD.
const BUDGETS: &str = "\
junior    | 4000  | 1500 | 600  | USD
mid       | 6000  | 2000 | 800  | USD
senior    | 8000  | 2500 | 1200 | USD
staff     | 10000 | 3000 | 1600 | USD
principal | 12000 | 4000 | 2000 | USD
";

pub(super) fn server() -> Spec {
    Spec {
        name: "team",
        description: "People, levels, budgets and expenses of the company.",
        version: "1.8.4",
        prefix: Some(""),
        era: Era::Handshake,
        annotations: Annotations::Given,
        tables: vec![
            table("members", "employee", member_fields(), Source::Lines(MEMBERS)),
            table("budgets", "budget level", budget_fields(), Source::Lines(BUDGETS)),
            // What a client submits; the rest is made when it is asked for.
            table("submitted", "expense", expense_fields(), Source::Lines("")),
        ],
        tools: people_tools().into_iter().chain(money_tools()).collect(),
    }
}

fn table(name: &'static str, singular: &'static str, columns: Vec<Field>, source: Source) -> Table {
    Table { name, singular, columns, id_prefix: "EXP-", time: None, source }
}

fn member_fields() -> Vec<Field> {
    vec![
        text("id", "Employee id, such as ENG-001."),
        text("name", "Full name."),
        text("email", "Work email address."),
        choice("department", DEPARTMENTS, "Department."),
        choice("level", LEVELS, "Job level; budgets depend on it."),
        text("title", "Job title."),
        text("location", "City of the home office."),
        date("start_date", "First day at the company."),
        text("manager_id", "Employee id of the manager; absent for heads.").optional(),
    ]
}

fn budget_fields() -> Vec<Field> {
    vec![
        choice("level", LEVELS, "Job level that the budget is for."),
        amount("travel_limit", "Most that may be spent on travel in a quarter."),
        amount("equipment_limit", "Most that may be spent on equipment in a quarter."),
        amount("training_limit", "Most that may be spent on training in a quarter."),
        text("currency", "Currency of the limits."),
    ]
}

fn expense_fields() -> Vec<Field> {
    vec![
        text("id", "Expense id."),
        text("employee_id", "Employee who spent the money."),
        date("date", "Day of the expense."),
        choice("category", CATEGORIES, "Category of the expense."),
        text("description", "What was paid for."),
        amount("amount", "Amount in the currency."),
        text("currency", "Currency of the amount.").or("USD"),
        choice("status", &["submitted", "approved", "reimbursed"], "Where it is in the process."),
        flag("receipt", "Whether a receipt is attached.").or(false),
    ]
}

fn employee_id() -> Field {
    text("employee_id", "Employee id as returned by get_team_members.").example("ENG-003")
}

fn people_tools() -> Vec<Tool> {
    vec![
        tool(
            "get_team_members",
            "Get all members of a department. Returns a list of employees with their id, name \
            and level, among others. Use the id to get a member's expenses and the level to get \
            their budget.",
            vec![choice("department", DEPARTMENTS, "Department whose members are wanted.")],
            Action::List("members", Shape::Bare),
        )
        .typed(),
        tool(
            "get_employee",
            "Get one employee's record by employee id.",
            vec![employee_id()],
            Action::Get("members"),
        )
        .typed(),
        tool(
            "search_employees",
            "Find employees by words of their name, title, email or location, in all departments.",
            vec![
                text("query", "Words to look for, such as a surname or a city.")
                    .example("mobile engineer"),
                choice("level", LEVELS, "Only employees of this level.").optional(),
            ],
            Action::List("members", Shape::Bare),
        )
        .typed(),
        tool(
            "list_departments",
            "List the departments of the company with their head and headcount.",
            vec![],
            Action::Report(departments),
        )
        .returns_list(vec![
            text("name", "Name to pass as `department` elsewhere."),
            text("head", "Name of the head of the department."),
            count("headcount", "Number of members."),
        ]),
        tool(
            "get_reporting_line",
            "Get the chain of managers above an employee, nearest first.",
            vec![employee_id()],
            Action::Compute(reporting_line),
        )
        .returns_list(vec![
            text("id", "Employee id of the manager."),
            text("name", "Name of the manager."),
            text("title", "Job title of the manager."),
        ]),
        tool(
            "get_time_off_balance",
            "Get how many days of paid leave an employee has left in a year, and how many were \
            taken.",
            vec![employee_id(), integer("year", 2024..=2026, "Calendar year.").or(2026)],
            Action::Compute(time_off),
        )
        .returns(vec![
            text("employee_id", "The employee."),
            count("entitled_days", "Days granted for the year."),
            count("taken_days", "Days taken so far."),
            count("remaining_days", "Days left."),
        ]),
    ]
}

fn money_tools() -> Vec<Tool> {
    vec![
        tool(
            "get_expenses",
            "Get all expense line items of an employee for a quarter of the current year. \
            Returns a list of items, each with amount, category, date and description; an \
            employee can have over a hundred in a quarter.",
            vec![
                employee_id(),
                choice("quarter", QUARTERS, "Quarter of the current year.").example("Q3"),
            ],
            Action::Compute(get_expenses),
        )
        .returns_list(expense_fields()),
        tool(
            "get_budget_by_level",
            "Get the quarterly spending limits for a job level: travel, equipment and training.",
            vec![choice("level", LEVELS, "Job level, as in an employee's record.")],
            Action::Get("budgets"),
        )
        .typed(),
        tool(
            "get_expense_policy",
            "Get the rules for a category of expenses: what is covered, whether a receipt is \
            needed and from which amount an approval is.",
            vec![choice("category", CATEGORIES, "Category of expenses.")],
            Action::Report(policy),
        )
        .returns(vec![
            text("category", "The category."),
            texts("covered", "What is covered."),
            amount("receipt_above", "Amount above which a receipt is needed."),
            amount("approval_above", "Amount above which a manager must approve."),
        ]),
        tool(
            "submit_expense",
            "Submit a new expense line item on behalf of an employee. It appears among their \
            expenses of the quarter with the status submitted.",
            vec![
                employee_id(),
                amount("amount", "Amount spent.").example(42.5),
                choice("category", CATEGORIES, "Category of the expense."),
                date("date", "Day of the expense, in the current year.").example("2026-10-14"),
                text("description", "What was paid for.").example("Train to the customer workshop"),
                text("currency", "ISO 4217 code of the currency.").or("USD"),
                object(
                    "attachment",
                    vec![
                        text("file_name", "Name of the receipt's file."),
                        text("url", "Where the file is.").optional(),
                    ],
                    "The receipt, if there is one.",
                )
                .optional(),
            ],
            Action::Change(submit),
        )
        .returns(expense_fields()),
    ]
}

fn departments(store: &Store, _: &Object) -> Value {
    let of = |name: &&str| {
        let members = store.rows("members").iter().filter(|row| row.text("department") == *name);
        let head = members.clone().next().map_or("", |row| row.text("name"));
        json!({ "name": name, "head": head, "headcount": members.count() })
    };
    DEPARTMENTS.iter().map(of).collect()
}

fn reporting_line(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let mut line = Vec::new();
    let mut member = store.find("members", &arguments["employee_id"])?;
    // No chain is longer than the list of people.
    for _ in store.rows("members") {
        let Some(manager) = member.get("manager_id") else { break };
        member = store.find("members", manager)?;
        line.push(json!({ "id": member["id"], "name": member["name"], "title": member["title"] }));
    }
    Ok(line.into())
}

fn time_off(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let member = store.find("members", &arguments["employee_id"])?;
    let (entitled, taken) = expenses::leave(member.text("id"), arguments.integer("year"));
    Ok(json!({
        "employee_id": member["id"],
        "entitled_days": entitled,
        "taken_days": taken,
        "remaining_days": entitled - taken,
    }))
}

fn get_expenses(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let member = store.find("members", &arguments["employee_id"])?;
    let budget = store.find("budgets", &member["level"])?;
    let quarter = arguments.text("quarter");
    let mut items = expenses::make(member.text("id"), quarter, budget.integer("travel_limit"));
    let submitted = store.rows("submitted").iter().filter(|row| {
        row.text("employee_id") == member.text("id")
            && expenses::quarter_of(row.text("date")) == quarter
    });
    items.extend(submitted.cloned().map(Value::from));
    Ok(items.into())
}

fn policy(_: &Store, arguments: &Object) -> Value {
    let category = arguments.text("category");
    let (covered, receipt, approval) = match category {
        "travel" => (["Flights and trains", "Hotels", "Local transport"], 25, 1_000),
        "meals" => (["Meals on trips", "Customer meals", "Team lunches"], 20, 150),
        "software" => (["Licences", "Cloud trials", "Fonts and assets"], 1, 200),
        "equipment" => (["Computers", "Monitors", "Headsets"], 1, 500),
        "office" => (["Stationery", "Postage", "Plants"], 15, 100),
        _ => (["Courses", "Conferences", "Books"], 1, 400),
    };
    json!({
        "category": category,
        "covered": covered,
        "receipt_above": receipt,
        "approval_above": approval,
    })
}

fn submit(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    store.find("members", &arguments["employee_id"])?;
    if !arguments.text("date").starts_with("2026-") {
        return Err(Failure::argument("date", "must be in the current year, 2026"));
    }
    let mut expense = arguments.clone();
    expense.insert("status".to_owned(), json!("submitted"));
    expense.insert("receipt".to_owned(), json!(arguments.contains_key("attachment")));
    store.insert("submitted", &expense).map(Value::from)
}
