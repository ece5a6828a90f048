const departments = ['engineering', 'sales', 'design', 'finance'];
const levels = ['junior', 'mid', 'senior', 'staff', 'principal'];
const categories = ['travel', 'meals', 'software', 'equipment', 'office', 'training'];
const category = choice(categories, 'Category of the expense.');
const expense = {
  id: text('Expense id.'),
  employee_id: text('Employee who spent the money.'),
  date: date('Day of the expense.'),
  category,
  description: text('What was paid for.'),
  amount: amount('Amount in the currency.'),
  currency: text('Currency of the amount.', { default: 'USD' }),
  status: choice(['submitted', 'approved', 'reimbursed'], 'Where it is in the process.'),
  receipt: boolean('Whether a receipt is attached.', { default: false }),
};

/**
 * The expenses of an employee in a quarter, by date. `share` is how much of the travel limit is
 * spent, in percent; without it, it is between the bounds of the quarter.
 */
function expenses(employee, quarter, count, share, limit, goods) {
  const random = new Random(`${employee} ${quarter.name}`);
  share ??= random.between(quarter.low, quarter.high);
  // Dollars times percent is cents. Some odd cents, for nobody's travels cost round sums.
  const travelCents = limit * share + random.below(4000);
  const otherCents = Math.floor((limit * Math.min(share, 75)) / 6);
  const isTravel = ({ category }) => category === 'travel';
  const travelCount = Math.floor((count * 38) / 100);
  const paid = [
    ...pay(random, goods.filter(isTravel), travelCount, travelCents),
    ...pay(random, goods.filter((good) => !isTravel(good)), count - travelCount, otherCents),
  ];
  const dated = paid.map((payment) => ({ day: random.below(quarter.days), ...payment }));
  dated.sort((one, two) => one.day - two.day || one.cents - two.cents);
  return dated.map(({ day, cents, good }, index) => ({
    id: `EXP-${employee}-${quarter.name}-${String(index + 1).padStart(3, '0')}`,
    employee_id: employee,
    date: dateOf(parseTime(quarter.first) + day * DAY),
    category: good.category,
    description: good.description,
    amount: float(cents / 100),
    currency: 'USD',
    status: day < quarter.days - 20 ? 'reimbursed' : 'approved',
    receipt: cents > 2500,
  }));
}

/** This many goods, with prices that come to exactly `total` cents. */
function pay(random, goods, count, total) {
  const chosen = Array.from({ length: count }, () => {
    const good = random.pick(goods);
    // Prices of the same thing differ by up to a quarter.
    return { good, weight: good.weight * random.between(100, 125) };
  });
  const weights = sum(chosen.map(({ weight }) => weight));
  let left = total;
  return chosen.map(({ good, weight }, index) => {
    // Shares are rounded down, so that the last one takes what is left over.
    const cents = index === count - 1 ? left : Math.floor((total * weight) / weights);
    left -= cents;
    return { cents, good };
  });
}

server({
  name: 'team',
  description: 'People, levels, budgets and expenses of the company.',
  version: '1.8.4',
  prefix: '',
  modern: false,
  annotations: true,
  tables: {
    members: {
      singular: 'employee',
      columns: {
        id: text('Employee id, such as ENG-001.'),
        name: text('Full name.'),
        email: text('Work email address.'),
        department: choice(departments, 'Department.'),
        level: choice(levels, 'Job level; budgets depend on it.'),
        title: text('Job title.'),
        location: text('City of the home office.'),
        start_date: date('First day at the company.'),
        manager_id: text('Employee id of the manager; absent for heads.', optional),
      },
      rows: `
        ENG-001 | Amara Okafor    | amara.okafor@example.com    | engineering | principal | Platform lead             | Lisbon     | 2017-03-01 |
        ENG-002 | Jonas Lindqvist | jonas.lindqvist@example.com | engineering | staff     | Storage engineer          | Gothenburg | 2018-06-18 | ENG-001
        ENG-003 | Priya Raman     | priya.raman@example.com     | engineering | senior    | Payments engineer         | Chennai    | 2019-01-14 | ENG-001
        ENG-004 | Mateo Fuentes   | mateo.fuentes@example.com   | engineering | mid       | Frontend engineer         | Valencia   | 2022-09-05 | ENG-003
        ENG-005 | Hana Kobayashi  | hana.kobayashi@example.com  | engineering | senior    | Search engineer           | Osaka      | 2020-02-10 | ENG-002
        ENG-006 | Elliot Marsh    | elliot.marsh@example.com    | engineering | junior    | Backend engineer          | Leeds      | 2025-07-01 | ENG-005
        ENG-007 | Zofia Nowak     | zofia.nowak@example.com     | engineering | mid       | Reliability engineer      | Krakow     | 2021-11-22 | ENG-002
        ENG-008 | Tariq Haddad    | tariq.haddad@example.com    | engineering | staff     | Security engineer         | Amman      | 2018-10-08 | ENG-001
        ENG-009 | Ingrid Solberg  | ingrid.solberg@example.com  | engineering | senior    | Data engineer             | Bergen     | 2019-08-26 | ENG-002
        ENG-010 | Caleb Osei      | caleb.osei@example.com      | engineering | junior    | Mobile engineer           | Accra      | 2025-02-17 | ENG-009
        ENG-011 | Lucia Moretti   | lucia.moretti@example.com   | engineering | mid       | Mobile engineer           | Turin      | 2022-04-04 | ENG-009
        ENG-012 | Dmitri Petrov   | dmitri.petrov@example.com   | engineering | senior    | Infrastructure engineer   | Sofia      | 2020-09-14 | ENG-008
        ENG-013 | Noor Rahman     | noor.rahman@example.com     | engineering | mid       | Backend engineer          | Dhaka      | 2023-01-09 | ENG-003
        ENG-014 | Felix Brandt    | felix.brandt@example.com    | engineering | junior    | Frontend engineer         | Graz       | 2026-01-05 | ENG-004
        ENG-015 | Siobhan Kelly   | siobhan.kelly@example.com   | engineering | principal | Architecture lead         | Galway     | 2016-05-23 | ENG-001
        ENG-016 | Wei Zhang       | wei.zhang@example.com       | engineering | senior    | Machine learning engineer | Singapore  | 2021-03-15 | ENG-015
        ENG-017 | Beatriz Almeida | beatriz.almeida@example.com | engineering | mid       | Test engineer             | Porto      | 2022-10-31 | ENG-015
        ENG-018 | Omar Farouk     | omar.farouk@example.com     | engineering | staff     | Network engineer          | Cairo      | 2018-12-03 | ENG-015
        ENG-019 | Grace Adeyemi   | grace.adeyemi@example.com   | engineering | junior    | Reliability engineer      | Lagos      | 2025-09-29 | ENG-018
        ENG-020 | Viktor Hansen   | viktor.hansen@example.com   | engineering | mid       | Build engineer            | Aarhus     | 2023-06-12 | ENG-018
        SAL-001 | Renata Vargas   | renata.vargas@example.com   | sales       | staff     | Head of sales             | Bogota     | 2018-02-05 |
        SAL-002 | Tobias Engel    | tobias.engel@example.com    | sales       | senior    | Account executive         | Hamburg    | 2020-08-17 | SAL-001
        SAL-003 | Mei Tanaka      | mei.tanaka@example.com      | sales       | mid       | Account executive         | Tokyo      | 2022-03-28 | SAL-001
        DES-001 | Clara Dubois    | clara.dubois@example.com    | design      | senior    | Design lead               | Lyon       | 2019-04-15 |
        DES-002 | Samuel Ortiz    | samuel.ortiz@example.com    | design      | mid       | Product designer          | Quito      | 2021-07-19 | DES-001
        FIN-001 | Margaret Doyle  | margaret.doyle@example.com  | finance     | staff     | Controller                | Cork       | 2017-11-13 |
        FIN-002 | Ravi Menon      | ravi.menon@example.com      | finance     | mid       | Accountant                | Kochi      | 2022-05-02 | FIN-001
      `,
    },
    budgets: {
      singular: 'budget level',
      columns: {
        level: choice(levels, 'Job level that the budget is for.'),
        travel_limit: amount('Most that may be spent on travel in a quarter.'),
        equipment_limit: amount('Most that may be spent on equipment in a quarter.'),
        training_limit: amount('Most that may be spent on training in a quarter.'),
        currency: text('Currency of the limits.'),
      },
      rows: `
        junior    | 4000  | 1500 | 600  | USD
        mid       | 6000  | 2000 | 800  | USD
        senior    | 8000  | 2500 | 1200 | USD
        staff     | 10000 | 3000 | 1600 | USD
        principal | 12000 | 4000 | 2000 | USD
      `,
    },
    submitted: {
      singular: 'expense', idPrefix: 'EXP-',
      columns: expense,
    },
    policies: {
      singular: 'category',
      columns: {
        category: text('The category.'),
        covered: list(text(), 'What is covered.'),
        receipt_above: amount('Amount above which a receipt is needed.'),
        approval_above: amount('Amount above which a manager must approve.'),
      },
      rows: `
        travel    | Flights and trains;Hotels;Local transport  | 25 | 1000
        meals     | Meals on trips;Customer meals;Team lunches | 20 | 150
        software  | Licences;Cloud trials;Fonts and assets     | 1  | 200
        equipment | Computers;Monitors;Headsets                | 1  | 500
        office    | Stationery;Postage;Plants                  | 15 | 100
        training  | Courses;Conferences;Books                  | 1  | 400
      `,
    },
    quarters: {
      singular: 'quarter',
      columns: {
        name: text('Quarter of 2026.'),
        first: date('First day.'),
        last: date('Last day.'),
        days: integer('Days with expenses: the demo takes place in the middle of October.'),
        items: integer('Expenses of an employee.'),
        low: integer('Least share of the travel limit that is spent, in percent.'),
        high: integer('Greatest share.'),
      },
      rows: `
        Q1 | 2026-01-01 | 2026-03-31 | 90 | 30 | 48 | 79
        Q2 | 2026-04-01 | 2026-06-30 | 91 | 30 | 48 | 79
        Q3 | 2026-07-01 | 2026-09-30 | 92 | 30 | 48 | 79
        Q4 | 2026-10-01 | 2026-12-31 | 14 | 8  | 5  | 12
      `,
    },
    overspent: {
      singular: 'employee',
      columns: {
        id: text('Who spent more than the travel limit in the third quarter.'),
        percent: integer('Share of the limit, in percent.'),
      },
      rows: `
        ENG-005 | 117
        ENG-011 | 108
        ENG-018 | 131
      `,
    },
    goods: {
      singular: 'good',
      columns: {
        description: text('What is paid for.'),
        category: text('Category of the expense.'),
        weight: integer('Price compared with the others.'),
      },
      rows: `
        Flight to customer site | travel    | 60
        Flight to team week     | travel    | 52
        Hotel, two nights       | travel    | 34
        Hotel, one night        | travel    | 18
        Train ticket            | travel    | 11
        Rental car              | travel    | 14
        Taxi from airport       | travel    | 5
        Airport parking         | travel    | 4
        Lunch with candidate    | meals     | 5
        Breakfast on trip       | meals     | 2
        Team lunch              | meals     | 7
        Coffee with customer    | meals     | 1
        Diagram editor, monthly | software  | 4
        Domain renewal          | software  | 3
        USB-C cable             | equipment | 3
        Keyboard                | equipment | 9
        Notebooks and pens      | office    | 2
        Courier                 | office    | 4
        Technical book          | training  | 6
        Online course module    | training  | 8
      `,
    },
  },
  tools: {
    get_team_members: {
      about: "Get all members of a department. Returns a list of employees with their id, name and level, among others. Use the id to get a member's expenses and the level to get their budget.",
      input: { department: choice(departments, 'Department whose members are wanted.') },
      action: 'list', table: 'members', output: 'row',
    },
    get_employee: {
      about: "Get one employee's record by employee id.",
      input: { employee_id: text('Employee id as returned by get_team_members.', { example: 'ENG-003' }) },
      action: 'get', table: 'members', output: 'row',
    },
    search_employees: {
      about: 'Find employees by words of their name, title, email or location, in all departments.',
      input: {
        query: text('Words to look for, such as a surname or a city.', { example: 'mobile engineer' }),
        level: choice(levels, 'Only employees of this level.', optional),
      },
      action: 'list', table: 'members', output: 'row',
    },
    list_departments: {
      about: 'List the departments of the company with their head and headcount.',
      input: {},
      action: 'compute',
      output: list(object({
        name: text('Name to pass as `department` elsewhere.'),
        head: text('Name of the head of the department.'),
        headcount: integer('Number of members.'),
      })),
      run: (_, { members }) =>
        departments.map((name) => {
          const found = members.where('department', name);
          return { name, head: found[0].name, headcount: found.length };
        }),
    },
    get_reporting_line: {
      about: 'Get the chain of managers above an employee, nearest first.',
      input: { employee_id: text('Employee id as returned by get_team_members.', { example: 'ENG-003' }) },
      action: 'compute',
      output: list(object({
        id: text('Employee id of the manager.'),
        name: text('Name of the manager.'),
        title: text('Job title of the manager.'),
      })),
      run({ employee_id }, { members }) {
        const managers = [];
        for (let row = members.find(employee_id); row.manager_id; ) {
          row = members.find(row.manager_id);
          managers.push({ id: row.id, name: row.name, title: row.title });
        }
        return managers;
      },
    },
    get_time_off_balance: {
      about: 'Get how many days of paid leave an employee has left in a year, and how many were taken.',
      input: {
        employee_id: text('Employee id as returned by get_team_members.', { example: 'ENG-003' }),
        year: integer('Calendar year.', { range: [2024, 2026], default: 2026 }),
      },
      action: 'compute',
      output: object({
        employee_id: text('The employee.'),
        entitled_days: integer('Days granted for the year.'),
        taken_days: integer('Days taken so far.'),
        remaining_days: integer('Days left.'),
      }),
      run({ employee_id, year }, { members }) {
        members.find(employee_id);
        const random = new Random(`${employee_id} ${year}`);
        const entitled_days = random.between(25, 30);
        const taken_days = year < 2026 ? entitled_days : random.between(4, 24);
        return { employee_id, entitled_days, taken_days, remaining_days: entitled_days - taken_days };
      },
    },
    get_expenses: {
      about: 'Get all expense line items of an employee for a quarter of the current year. Returns a list of items, each with amount, category, date and description; an employee can have over a hundred in a quarter.',
      input: {
        employee_id: text('Employee id as returned by get_team_members.', { example: 'ENG-003' }),
        quarter: choice(['Q1', 'Q2', 'Q3', 'Q4'], 'Quarter of the current year.', { example: 'Q3' }),
      },
      action: 'compute',
      output: list(object(expense)),
      run({ employee_id, quarter }, { members, quarters, overspent, budgets, goods, submitted }) {
        const member = members.find(employee_id);
        const span = quarters.find(quarter);
        const count = quarter === 'Q3' && employee_id.startsWith('ENG-') ? 100 : span.items;
        const share = quarter === 'Q3' ? overspent.lookup(employee_id)?.percent : undefined;
        const made = expenses(employee_id, span, count, share, budgets.find(member.level).travel_limit, goods.rows);
        const added = submitted.where('employee_id', employee_id).filter(({ date }) => date >= span.first && date <= span.last);
        return [...made, ...added];
      },
    },
    get_budget_by_level: {
      about: 'Get the quarterly spending limits for a job level: travel, equipment and training.',
      input: { level: choice(levels, "Job level, as in an employee's record.") },
      action: 'get', table: 'budgets', output: 'row',
    },
    get_expense_policy: {
      about: 'Get the rules for a category of expenses: what is covered, whether a receipt is needed and from which amount an approval is.',
      input: { category: choice(categories, 'Category of expenses.') },
      action: 'get', table: 'policies', output: 'row',
    },
    submit_expense: {
      about: 'Submit a new expense line item on behalf of an employee. It appears among their expenses of the quarter with the status submitted.',
      input: {
        employee_id: text('Employee id as returned by get_team_members.', { example: 'ENG-003' }),
        amount: amount('Amount spent.', { example: 42.5 }),
        category,
        date: date('Day of the expense, in the current year.', { example: '2026-10-14' }),
        description: text('What was paid for.', { example: 'Train to the customer workshop' }),
        currency: text('ISO 4217 code of the currency.', { default: 'USD' }),
        attachment: object({ file_name: text("Name of the receipt's file."), url: text('Where the file is.', optional) }, 'The receipt, if there is one.', optional),
      },
      action: 'change',
      output: object(expense),
      run({ employee_id, date, category, description, amount, currency, attachment }, { members, submitted }) {
        members.find(employee_id);
        require(date.startsWith('2026-'), 'Invalid argument `date`: must be in the current year, 2026');
        const receipt = attachment !== undefined;
        return submitted.insert({ employee_id, date, category, description, amount, currency, status: 'submitted', receipt });
      },
    },
  },
});
