//! Limits on constant expressions.
//!
//! The compiler computes them, each time it meets one on its way down: `'x' * 100000000` takes its memory before anything is
//! filled. So their cost is known, and limited, before the compiler starts.

use minijinja::Value as View;
use minijinja::machinery::ast::{BinOp, BinOpKind, CallArg, Const, Expr, Spanned, Stmt};

/// Bytes that the compiler may make of the constants of one template.
const MOST: usize = 8 << 20;
/// Bytes counted for a constant besides its text.
const VALUE: usize = 16;

/// Bytes left for the constants of one template.
pub(super) struct Constants {
    left: usize,
}

/// A constant, and the bytes that the compiler makes to compute it.
struct Folded {
    value: Option<View>,
    cost: usize,
}

impl Folded {
    const NONE: Self = Self { value: None, cost: 0 };
}

/// Checks a template's constants.
///
/// # Errors
/// They are too large, or the template has a statement or an argument that cannot be limited.
pub(super) fn check_template(template: &Stmt<'_>) -> Result<(), String> {
    Constants { left: MOST }.statement(template)
}

/// Checks an expression's constants.
///
/// # Errors
/// As [`check_template`].
pub(super) fn check_expression(expression: &Expr<'_>) -> Result<(), String> {
    Constants { left: MOST }.expression(expression).map(drop)
}

impl Constants {
    fn statements(&mut self, statements: &[Stmt<'_>]) -> Result<(), String> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn all<'e, 's: 'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr<'s>>) -> Result<(), String> {
        expressions.into_iter().try_for_each(|expression| self.expression(expression).map(drop))
    }

    fn statement(&mut self, statement: &Stmt<'_>) -> Result<(), String> {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => self.all([&emit.expr]),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::ForLoop(block) => {
                self.all([&block.iter].into_iter().chain(&block.filter_expr))?;
                self.statements(&block.body)?;
                self.statements(&block.else_body)
            }
            Stmt::IfCond(block) => {
                self.all([&block.expr])?;
                self.statements(&block.true_body)?;
                self.statements(&block.false_body)
            }
            Stmt::WithBlock(block) => {
                self.all(block.assignments.iter().map(|(_, value)| value))?;
                self.statements(&block.body)
            }
            Stmt::Set(set) => self.all([&set.expr]),
            Stmt::SetBlock(block) => {
                self.all(&block.filter)?;
                self.statements(&block.body)
            }
            Stmt::AutoEscape(block) => {
                self.all([&block.enabled])?;
                self.statements(&block.body)
            }
            Stmt::FilterBlock(block) => {
                self.all([&block.filter])?;
                self.statements(&block.body)
            }
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Macro(declared) => {
                self.all(&declared.defaults)?;
                self.statements(&declared.body)
            }
            Stmt::CallBlock(block) => {
                self.all([&block.call.expr])?;
                self.arguments(&block.call.args)?;
                self.all(&block.macro_decl.defaults)?;
                self.statements(&block.macro_decl.body)
            }
            Stmt::Do(statement) => {
                self.all([&statement.call.expr])?;
                self.arguments(&statement.call.args)
            }
            Stmt::Import(_) | Stmt::FromImport(_) | Stmt::Extends(_) | Stmt::Include(_) => {
                Err(refused("a template cannot include or extend another"))
            }
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Result<(), String> {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.all([value]),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                Err(refused("arguments cannot be unpacked with * or **"))
            }
        })
    }

    /// Counts the cost of a node: the compiler computes constants again at each level above them.
    fn expression(&mut self, expression: &Expr<'_>) -> Result<Folded, String> {
        let folded = self.folded(expression)?;
        self.left = self.left.checked_sub(folded.cost).ok_or_else(too_large)?;
        Ok(folded)
    }

    fn folded(&mut self, expression: &Expr<'_>) -> Result<Folded, String> {
        match expression {
            Expr::Const(constant) => Ok(Folded::of(constant.value.clone(), 0)),
            Expr::BinOp(operation) => self.operation(operation),
            Expr::UnaryOp(operation) => {
                let inner = self.expression(&operation.expr)?;
                Ok(Folded { value: inner.value.and_then(|_| expression.as_const()), cost: inner.cost })
            }
            Expr::Compare(compare) => {
                let mut whole = self.expression(&compare.expr)?;
                for operation in &compare.ops {
                    let next = self.expression(&operation.expr)?;
                    whole = Folded {
                        value: whole.value.and(next.value),
                        cost: whole.cost.saturating_add(next.cost),
                    };
                }
                Ok(Folded { value: whole.value.and_then(|_| expression.as_const()), cost: whole.cost })
            }
            Expr::List(list) => self.collection(&list.items, expression),
            Expr::Tuple(tuple) => self.collection(&tuple.items, expression),
            Expr::Map(map) => {
                self.all(&map.keys)?;
                self.collection(&map.values, expression)
            }
            Expr::Var(_) => Ok(Folded::NONE),
            Expr::Slice(slice) => {
                self.all(
                    [&slice.expr].into_iter().chain(&slice.start).chain(&slice.stop).chain(&slice.step),
                )?;
                Ok(Folded::NONE)
            }
            Expr::IfExpr(choice) => {
                self.all([&choice.test_expr, &choice.true_expr].into_iter().chain(&choice.false_expr))?;
                Ok(Folded::NONE)
            }
            Expr::Filter(filter) => {
                self.all(&filter.expr)?;
                self.arguments(&filter.args)?;
                Ok(Folded::NONE)
            }
            Expr::Test(test) => {
                self.all([&test.expr])?;
                self.arguments(&test.args)?;
                Ok(Folded::NONE)
            }
            Expr::GetAttr(member) => self.all([&member.expr]).map(|()| Folded::NONE),
            Expr::GetItem(item) => {
                self.all([&item.expr, &item.subscript_expr])?;
                Ok(Folded::NONE)
            }
            Expr::Call(call) => {
                self.all([&call.expr])?;
                self.arguments(&call.args)?;
                Ok(Folded::NONE)
            }
        }
    }

    /// A list, tuple or map: a constant if all its parts are literals.
    fn collection(&mut self, items: &[Expr<'_>], whole: &Expr<'_>) -> Result<Folded, String> {
        self.all(items)?;
        Ok(match whole.as_const() {
            Some(value) => Folded::of(value, 0),
            None => Folded::NONE,
        })
    }

    fn operation(&mut self, operation: &BinOp<'_>) -> Result<Folded, String> {
        let (left, right) = (self.expression(&operation.left)?, self.expression(&operation.right)?);
        let cost = left.cost.saturating_add(right.cost);
        let (Some(a), Some(b)) = (left.value, right.value) else { return Ok(Folded { value: None, cost }) };
        if matches!(operation.op, BinOpKind::Mul)
            && repeated(&a, &b).or_else(|| repeated(&b, &a)) > Some(MOST)
        {
            return Err(too_large());
        }
        Ok(match computed(operation.op, a, b) {
            Some(value) => Folded::of(value, cost),
            None => Folded { value: None, cost },
        })
    }
}

impl Folded {
    fn of(value: View, cost: usize) -> Self {
        let cost = cost.saturating_add(size(&value));
        Self { value: Some(value), cost }
    }
}

/// The result of an operation on two values; `None` if it fails.
pub(super) fn computed(op: BinOpKind, left: View, right: View) -> Option<View> {
    let literal = |value| Expr::Const(Spanned::new(Const { value }, Default::default()));
    let (left, right) = (literal(left), literal(right));
    Expr::BinOp(Spanned::new(BinOp { op, left, right }, Default::default())).as_const()
}

fn refused(message: &str) -> String {
    message.to_owned()
}

fn too_large() -> String {
    format!("the constants of the template are larger than {} MiB", MOST >> 20)
}

/// Bytes of a text or a list that is repeated.
pub(super) fn repeated(value: &View, times: &View) -> Option<usize> {
    if value.is_number() {
        return None;
    }
    Some(size(value).saturating_mul(times.as_usize()?))
}

/// Bytes of a value whose parts are texts and numbers.
fn size(value: &View) -> usize {
    match value.as_str() {
        Some(text) => VALUE + text.len(),
        None => VALUE + value.try_iter().map_or(0, |items| items.map(|item| size(&item)).sum::<usize>()),
    }
}
