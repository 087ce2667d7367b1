//! Compiled templates and expressions whose operations are metered.
//!
//! The template machine does not limit what one operation creates. So a check follows each operation in the compiled
//! program that creates or compares values. Repetition and concatenation, which could exhaust memory at once, are
//! replaced.

use std::collections::BTreeMap;

use minijinja::machinery::{
    CodeGenerator, Instruction, Instructions, eval, make_string_output, parse, parse_expr,
};
use minijinja::{AutoEscape, Environment, Error, Value as View};

use super::operators::{CHECK, CONCATENATE, REPEAT, STEP};
use super::{SYNTAX, constants, one_line};
use crate::tags;

/// A compiled template or expression.
pub(super) struct Program<'s> {
    text: &'s str,
    instructions: Instructions<'s>,
    blocks: BTreeMap<&'s str, Instructions<'s>>,
}

impl<'s> Program<'s> {
    /// Compiles a text with tags.
    ///
    /// # Errors
    /// The reason why the text is not a template, in one line.
    pub(super) fn template(text: &'s str) -> Result<Self, String> {
        tags::check(text)?;
        let tree = parse(text, "<string>", SYNTAX.clone()).map_err(|error| one_line(&error))?;
        constants::check_template(&tree)?;
        let mut generator = CodeGenerator::new("<string>", text);
        generator.compile_stmt(&tree);
        Ok(Self::new(text, generator))
    }

    /// Compiles a bare expression.
    ///
    /// # Errors
    /// The reason why the text is not an expression, in one line.
    pub(super) fn expression(text: &'s str) -> Result<Self, String> {
        tags::check_length(text)?;
        let tree = parse_expr(text).map_err(|error| one_line(&error))?;
        constants::check_expression(&tree)?;
        let mut generator = CodeGenerator::new("<expression>", text);
        generator.compile_expr(&tree);
        Ok(Self::new(text, generator))
    }

    fn new(text: &'s str, generator: CodeGenerator<'s>) -> Self {
        let (instructions, blocks) = generator.finish();
        let blocks = blocks.into_iter().map(|(name, block)| (name, metered(block))).collect();
        Self { text, instructions: metered(instructions), blocks }
    }

    pub(super) fn text(&self) -> &'s str {
        self.text
    }

    /// Runs the program. Returns an expression's value, or writes a template's text.
    ///
    /// # Errors
    /// Errors from its operations and from the meter.
    pub(super) fn run(
        &self,
        environment: &Environment<'static>,
        scope: &View,
        text: &mut String,
    ) -> Result<Option<View>, Error> {
        let mut output = make_string_output(text);
        let run =
            eval(environment, &self.instructions, scope.clone(), &self.blocks, &mut output, AutoEscape::None);
        run.map(|(value, _)| value)
    }
}

/// Returns the same program with checks added.
fn metered<'s>(instructions: Instructions<'s>) -> Instructions<'s> {
    let all = || (0..).map_while(|at| instructions.get(at));
    if !all().any(needs_check) {
        return instructions;
    }
    let repeats = all().any(may_repeat);
    let mut places = Vec::new();
    let mut next: u32 = 0;
    for instruction in all() {
        places.push(next);
        next += length(instruction, repeats);
    }
    places.push(next);
    let mut metered = Instructions::new(instructions.name(), instructions.source());
    for (at, instruction) in (0..).map_while(|at| Some((at, instructions.get(at)?))) {
        let span = instructions.get_span(at).unwrap_or_default();
        let mut add = |instruction| metered.add_with_span(instruction, span);
        match instruction {
            Instruction::EmitRaw(raw) if repeats => {
                add(Instruction::LoadConst(View::from_safe_string((*raw).to_owned())));
                add(Instruction::Emit);
            }
            Instruction::Mul => {
                add(Instruction::ApplyFilter(REPEAT, Some(2), UNCACHED));
            }
            Instruction::StringConcat => {
                add(Instruction::ApplyFilter(CONCATENATE, Some(2), UNCACHED));
            }
            other => {
                add(moved(other, &places));
                if let Some(check) = check(other) {
                    add(Instruction::ApplyFilter(check, Some(1), UNCACHED));
                }
            }
        }
    }
    metered
}

/// Cache slot of a filter that is resolved on each call.
const UNCACHED: u8 = !0;

/// Number of instructions that replace one.
fn length(instruction: &Instruction<'_>, repeats: bool) -> u32 {
    match instruction {
        Instruction::EmitRaw(_) => 1 + u32::from(repeats),
        Instruction::Mul | Instruction::StringConcat => 1,
        other => 1 + u32::from(check(other).is_some()),
    }
}

fn needs_check(instruction: &Instruction<'_>) -> bool {
    matches!(instruction, Instruction::Mul | Instruction::StringConcat)
        || may_repeat(instruction)
        || check(instruction).is_some()
}

/// Whether the program's text may be written more than once, or into a value.
fn may_repeat(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction,
        Instruction::PushLoop(_)
            | Instruction::BeginCapture(_)
            | Instruction::BuildMacro(..)
            | Instruction::CallBlock(_)
            | Instruction::FastSuper
    )
}

/// Returns the check that follows an instruction.
fn check(instruction: &Instruction<'_>) -> Option<&'static str> {
    match instruction {
        Instruction::Add
        | Instruction::Slice
        | Instruction::BuildMap(_)
        | Instruction::BuildList(_)
        | Instruction::BuildTuple(_)
        | Instruction::EndCapture
        | Instruction::CallMethod(..)
        | Instruction::CallObject(_) => Some(CHECK),
        // A range is lazy and not nested: it stays lazy, which costs nothing.
        Instruction::CallFunction(name, _) => Some(if *name == "range" { STEP } else { CHECK }),
        Instruction::Eq
        | Instruction::Ne
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::In
        | Instruction::CompareAndPreserve(_)
        | Instruction::GetItem => Some(STEP),
        _ => None,
    }
}

/// Copies an instruction with its jump target moved.
fn moved<'s>(instruction: &Instruction<'s>, places: &[u32]) -> Instruction<'s> {
    let to = |target: u32| {
        usize::try_from(target).ok().and_then(|target| places.get(target)).copied().unwrap_or(target)
    };
    match instruction {
        Instruction::Iterate(target) => Instruction::Iterate(to(*target)),
        Instruction::Jump(target) => Instruction::Jump(to(*target)),
        Instruction::JumpIfFalse(target) => Instruction::JumpIfFalse(to(*target)),
        Instruction::JumpIfFalseOrPop(target) => Instruction::JumpIfFalseOrPop(to(*target)),
        Instruction::JumpIfTrueOrPop(target) => Instruction::JumpIfTrueOrPop(to(*target)),
        Instruction::BuildMacro(name, target, flags) => Instruction::BuildMacro(name, to(*target), *flags),
        other => other.clone(),
    }
}
