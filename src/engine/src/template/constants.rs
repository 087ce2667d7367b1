//! Limits on constant expressions.
//!
//! The compiler evaluates constants, again at each level above them: `'x' * 100000000` allocates its memory before
//! anything is filled. So their cost is computed and limited before compilation.

use minijinja::Value as View;
use minijinja::machinery::ast::{
    BinOp, BinOpKind, CallArg, Compare, Const, Expr, Spanned, Stmt, UnaryOp, UnaryOpKind,
};

/// Maximum bytes that the compiler may create for one template's constants.
const MOST: usize = 8 << 20;
/// Bytes charged per constant, besides its text.
const VALUE: usize = 16;
/// Bytes charged per list item.
const ITEM: usize = 24;

/// The remaining bytes for one template's constants.
pub(super) struct Constants {
    left: usize,
}

/// A constant, and the bytes that the compiler creates to evaluate it.
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
/// The constants are too large, or the template has a statement or an argument that cannot be limited.
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

    /// Adds the cost of each node: the compiler evaluates constants again at each level above them.
    ///
    /// A chain may have a thousand operators, so this function does not recurse along it.
    fn expression(&mut self, expression: &Expr<'_>) -> Result<Folded, String> {
        let mut chain = vec![expression];
        while let Some(inner) = chain.last().and_then(|last| operand(last)) {
            chain.push(inner);
        }
        let mut folded = Folded::NONE;
        for expression in chain.into_iter().rev() {
            folded = self.folded(expression, folded)?;
            self.left = self.left.checked_sub(folded.cost).ok_or_else(too_large)?;
        }
        Ok(folded)
    }

    /// Evaluates an expression with `inner` as its first operand.
    fn folded(&mut self, expression: &Expr<'_>, inner: Folded) -> Result<Folded, String> {
        match expression {
            Expr::Const(constant) => return Ok(Folded::new(constant.value.clone(), 0)),
            Expr::BinOp(operation) => return self.operation(operation, inner),
            Expr::UnaryOp(operation) => return Ok(negated(&operation.op, inner)),
            Expr::Compare(compare) => return self.comparison(compare, expression, inner),
            Expr::List(list) => return self.collection(&list.items, expression),
            Expr::Tuple(tuple) => return self.collection(&tuple.items, expression),
            Expr::Map(map) => {
                self.all(&map.keys)?;
                return self.collection(&map.values, expression);
            }
            Expr::Var(_) | Expr::GetAttr(_) => {}
            Expr::Slice(slice) => {
                self.all(slice.start.iter().chain(&slice.stop).chain(&slice.step))?;
            }
            Expr::IfExpr(choice) => {
                self.all([&choice.true_expr].into_iter().chain(&choice.false_expr))?;
            }
            Expr::Filter(filter) => self.arguments(&filter.args)?,
            Expr::Test(test) => self.arguments(&test.args)?,
            Expr::GetItem(item) => self.all([&item.subscript_expr])?,
            Expr::Call(call) => self.arguments(&call.args)?,
        }
        Ok(Folded::NONE)
    }

    fn comparison(
        &mut self,
        compare: &Compare<'_>,
        whole: &Expr<'_>,
        inner: Folded,
    ) -> Result<Folded, String> {
        let mut folded = inner;
        for operation in &compare.ops {
            let next = self.expression(&operation.expr)?;
            let cost = folded.cost.saturating_add(next.cost);
            folded = Folded { value: folded.value.and(next.value), cost };
        }
        Ok(Folded { value: folded.value.and_then(|_| whole.as_const()), cost: folded.cost })
    }

    /// A list, tuple or map; constant if all its parts are literals.
    fn collection(&mut self, items: &[Expr<'_>], whole: &Expr<'_>) -> Result<Folded, String> {
        self.all(items)?;
        Ok(match whole.as_const() {
            Some(value) => Folded::new(value, 0),
            None => Folded::NONE,
        })
    }

    fn operation(&mut self, operation: &BinOp<'_>, left: Folded) -> Result<Folded, String> {
        let right = self.expression(&operation.right)?;
        let cost = left.cost.saturating_add(right.cost);
        let (Some(a), Some(b)) = (left.value, right.value) else { return Ok(Folded { value: None, cost }) };
        if matches!(operation.op, BinOpKind::Mul)
            && repeated(&a, &b).or_else(|| repeated(&b, &a)) > Some(MOST)
        {
            return Err(too_large());
        }
        Ok(match computed(operation.op, a, b) {
            Some(value) => Folded::new(value, cost),
            None => Folded { value: None, cost },
        })
    }
}

impl Folded {
    fn new(value: View, cost: usize) -> Self {
        let cost = cost.saturating_add(size(&value));
        Self { value: Some(value), cost }
    }
}

/// Returns an expression's first operand.
fn operand<'e, 's>(expression: &'e Expr<'s>) -> Option<&'e Expr<'s>> {
    match expression {
        Expr::UnaryOp(operation) => Some(&operation.expr),
        Expr::BinOp(operation) => Some(&operation.left),
        Expr::Compare(compare) => Some(&compare.expr),
        Expr::IfExpr(choice) => Some(&choice.test_expr),
        Expr::Filter(filter) => filter.expr.as_ref(),
        Expr::Test(test) => Some(&test.expr),
        Expr::GetAttr(member) => Some(&member.expr),
        Expr::GetItem(item) => Some(&item.expr),
        Expr::Slice(slice) => Some(&slice.expr),
        Expr::Call(call) => Some(&call.expr),
        Expr::Var(_) | Expr::Const(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => None,
    }
}

fn literal<'s>(value: View) -> Expr<'s> {
    Expr::Const(Spanned::new(Const { value }, Default::default()))
}

fn negated(op: &UnaryOpKind, inner: Folded) -> Folded {
    let op = match op {
        UnaryOpKind::Not => UnaryOpKind::Not,
        UnaryOpKind::Neg => UnaryOpKind::Neg,
    };
    let value = inner.value.and_then(|value| {
        Expr::UnaryOp(Spanned::new(UnaryOp { op, expr: literal(value) }, Default::default())).as_const()
    });
    Folded { value, cost: inner.cost }
}

/// Applies an operation to two values; `None` if it fails.
pub(super) fn computed(op: BinOpKind, left: View, right: View) -> Option<View> {
    let (left, right) = (literal(left), literal(right));
    Expr::BinOp(Spanned::new(BinOp { op, left, right }, Default::default())).as_const()
}

fn refused(message: &str) -> String {
    message.to_owned()
}

fn too_large() -> String {
    format!("the constants of the template are larger than {} MiB", MOST >> 20)
}

/// Bytes of a repeated text or list.
pub(super) fn repeated(value: &View, times: &View) -> Option<usize> {
    let bytes = match value.as_str() {
        Some(text) => text.len(),
        None if value.is_number() => return None,
        None => value.len()?.saturating_mul(ITEM),
    };
    Some(bytes.saturating_mul(times.as_usize()?))
}

/// Bytes of a value that consists of texts and numbers.
fn size(value: &View) -> usize {
    match value.as_str() {
        Some(text) => VALUE + text.len(),
        None => VALUE + value.try_iter().map_or(0, |items| items.map(|item| size(&item)).sum::<usize>()),
    }
}
