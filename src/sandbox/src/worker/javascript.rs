//! JavaScript on QuickJS.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use kernel::json::{Numbers, check_numbers};
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::Func;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, Evaluated};
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Error, Function, Module, Runtime, Value};
use serde_json::value::RawValue;

use super::logs::Logs;
use crate::call::{Entry, Source, Surveyed, SyntaxProblem};
use crate::frame::WorkerAnswer;

/// Limits for a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) memory: usize,
    pub(super) output: usize,
    pub(super) logs: usize,
}

const PRELUDE: &str = include_str!("prelude.js");
/// The name of standalone code in stack traces.
const ALONE: &str = "source";
/// Precedes code that is only parsed.
const STOP: &str = "throw 0;";
/// Stack bytes of the interpreter; deeper recursion is a RangeError.
const STACK: usize = 8 << 20;

/// The available built-ins. Excluded: a clock, weak references (which reveal garbage collection), the DOM.
type BuiltIns = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

type Modules = Arc<crate::call::Modules>;

struct ModuleNames(Modules);

impl Resolver for ModuleNames {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        let bare = name.strip_prefix("./").unwrap_or(name);
        if self.0.contains_key(bare) && bare.ends_with(".js") {
            return Ok(bare.to_owned());
        }
        let names: Vec<&str> =
            self.0.keys().map(String::as_str).filter(|name| name.ends_with(".js")).collect();
        let shown: String = name.chars().take(80).collect();
        let message = format!("module '{shown}' not found; the graph has: {}", names.join(", "));
        Err(rquickjs::Exception::throw_reference(ctx, &message))
    }
}

struct Sources(Modules);

impl Loader for Sources {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let source = self.0.get(name).ok_or_else(|| Error::new_loading(name))?;
        Module::declare(ctx.clone(), name, &**source)
    }
}

/// Context objects that a run needs.
struct Prepared<'js> {
    replacer: Function<'js>,
}

pub(super) fn call(entry: Entry, modules: Modules, args: &RawValue, bounds: Bounds) -> WorkerAnswer {
    if let Err(number) = check_numbers(args.get().as_bytes(), Numbers::Doubles) {
        return WorkerAnswer::failed(format!("the arguments are not exact in JavaScript: {number}"));
    }
    let sources = Arc::clone(&modules);
    inside(modules, bounds, false, |ctx, prepared| {
        let args = ctx.json_parse(args.get())?;
        let result = match entry {
            Entry::Function { module, function } => {
                let module = load(ctx, &sources, &module)?;
                let function: Function = module.namespace()?.get(function)?;
                function.call::<_, Value>((args,))?
            }
            Entry::Source(source) => alone(ctx, source, args)?,
        };
        let result = settled(result)?;
        ctx.json_stringify_replacer(result, prepared.replacer.clone())?
            .map(|text| text.to_string())
            .transpose()
    })
    .map_or_else(
        |answer| answer,
        |(text, logs)| {
            let text = text.unwrap_or_else(|| "null".to_owned());
            if text.len() > bounds.output {
                return WorkerAnswer::OutputTooLarge;
            }
            match RawValue::from_string(text) {
                Ok(value) => WorkerAnswer::Value { value, logs },
                Err(error) => WorkerAnswer::failed(error.to_string()),
            }
        },
    )
}

pub(super) fn survey(source: Source, modules: Modules, bounds: Bounds) -> WorkerAnswer {
    let sources = Arc::clone(&modules);
    let found = inside(modules, bounds, true, |ctx, _| {
        let mut names = Vec::new();
        match source {
            Source::Module(name) => {
                for name in load(ctx, &sources, &name)?.namespace()?.keys::<String>() {
                    names.push(name?);
                }
            }
            // The whole source is parsed before the first statement throws, so none of it runs.
            Source::Alone(source) => {
                match ctx.eval_with_options::<Value, _>(format!("{STOP}{source}"), options()).catch(ctx) {
                    Ok(_) | Err(CaughtError::Value(_)) => {}
                    Err(error) => return Err(error.throw(ctx)),
                }
            }
        }
        Ok(names)
    });
    match found {
        Ok((names, _)) => WorkerAnswer::Surveyed(Surveyed { names }),
        Err(WorkerAnswer::Failed { message, line, column, .. }) => {
            WorkerAnswer::Unsound(SyntaxProblem { message, line, column })
        }
        Err(other) => other,
    }
}

/// Runs a closure in a fresh context.
fn inside<T>(
    modules: Modules,
    bounds: Bounds,
    surveyed: bool,
    work: impl for<'js> FnOnce(&Ctx<'js>, &Prepared<'js>) -> rquickjs::Result<T>,
) -> Result<(T, String), WorkerAnswer> {
    let broken = |error: Error| WorkerAnswer::failed(error.to_string());
    let runtime = Runtime::new().map_err(broken)?;
    runtime.set_memory_limit(bounds.memory);
    runtime.set_max_stack_size(STACK);
    runtime.set_loader(ModuleNames(Arc::clone(&modules)), Sources(Arc::clone(&modules)));
    let context = Context::custom::<BuiltIns>(&runtime).map_err(broken)?;
    let logs = Rc::new(RefCell::new(Logs::new(bounds.logs)));
    let kept = Rc::clone(&logs);
    let done = context.with(|ctx| {
        let prepared = prepare(&ctx, kept).map_err(broken)?;
        work(&ctx, &prepared).catch(&ctx).map_err(|error| failure(&error, &modules, surveyed))
    });
    drop(context);
    drop(runtime);
    let logs = Rc::into_inner(logs).map(|logs| logs.into_inner().into_text()).unwrap_or_default();
    done.map(|done| (done, logs))
}

fn prepare<'js>(ctx: &Ctx<'js>, logs: Rc<RefCell<Logs>>) -> rquickjs::Result<Prepared<'js>> {
    let prelude: Function = ctx.eval(PRELUDE)?;
    let log = Func::from(move |text: String| logs.borrow_mut().push(&text));
    Ok(Prepared { replacer: prelude.call((log,))? })
}

fn options() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(ALONE.to_owned());
    options
}

/// Loads a graph module.
fn load<'js>(ctx: &Ctx<'js>, modules: &Modules, name: &str) -> rquickjs::Result<Module<'js, Evaluated>> {
    let source = modules
        .get(name)
        .ok_or_else(|| rquickjs::Exception::throw_reference(ctx, &format!("module '{name}' not found")))?;
    let (module, loaded) = Module::declare(ctx.clone(), name, &**source)?.eval()?;
    loaded.finish::<Value>()?;
    Ok(module)
}

/// Runs standalone code: its function `main`, or else its last expression.
fn alone<'js>(ctx: &Ctx<'js>, source: String, args: Value<'js>) -> rquickjs::Result<Value<'js>> {
    ctx.globals().set("args", args.clone())?;
    let last: Value = ctx.eval_with_options(source, options())?;
    let main: Value = ctx.eval("typeof main === 'function' ? main : undefined")?;
    match main.into_function() {
        Some(main) => main.call((args,)),
        None => Ok(last),
    }
}

/// Returns the value, or the result if it is a promise.
fn settled(value: Value<'_>) -> rquickjs::Result<Value<'_>> {
    match value.as_promise() {
        Some(promise) => promise.finish(),
        None => Ok(value),
    }
}

fn failure(error: &CaughtError<'_>, modules: &Modules, surveyed: bool) -> WorkerAnswer {
    let (message, stack) = match error {
        CaughtError::Exception(exception) => {
            let name = exception.as_object().get::<_, String>("name").unwrap_or_else(|_| "Error".to_owned());
            let message = exception.message().unwrap_or_default();
            if name == "InternalError" && message == "out of memory" {
                return WorkerAnswer::Memory;
            }
            (format!("{name}: {message}"), exception.stack().unwrap_or_default())
        }
        // QuickJS throws null if it has no memory for an error object.
        CaughtError::Value(thrown) if thrown.is_null() => return WorkerAnswer::Memory,
        CaughtError::Value(thrown) => {
            let shown = thrown.as_string().and_then(|text| text.to_string().ok());
            let shown = shown.or_else(|| {
                let text = thrown.ctx().json_stringify(thrown.clone()).ok()??;
                text.to_string().ok()
            });
            (
                format!("it threw {}", shown.unwrap_or_else(|| "a value that is not an error".to_owned())),
                String::new(),
            )
        }
        CaughtError::Error(Error::WouldBlock) => {
            ("the promise that it returned is never settled".to_owned(), String::new())
        }
        CaughtError::Error(Error::Allocation) => return WorkerAnswer::Memory,
        CaughtError::Error(error) => (error.to_string(), String::new()),
    };
    let place = stack.lines().find_map(|frame| place(frame, modules));
    let (module, line, column) = match place {
        Some((ALONE, line, column)) => (
            None,
            Some(line),
            column.map(|column| {
                let before = if surveyed && line == 1 { STOP.len() } else { 0 };
                column.saturating_sub(u32::try_from(before).unwrap_or_default()).max(1)
            }),
        ),
        Some((module, line, column)) => (Some(module.to_owned()), Some(line), column),
        None => (None, None, None),
    };
    WorkerAnswer::Failed { message, module, line, column }
}

/// Parses the location in a stack trace line: `    at tidy (shape.js:3:11)`, or without a function.
fn place<'a>(frame: &'a str, modules: &Modules) -> Option<(&'a str, u32, Option<u32>)> {
    let place = frame.trim().trim_end_matches(')');
    let place = place.rsplit_once('(').map_or_else(|| place.trim_start_matches("at "), |(_, place)| place);
    let (rest, last) = place.rsplit_once(':')?;
    let last = last.parse().ok()?;
    let (file, line, column) = match rest.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) => (file, line, Some(last)),
        _ => (rest, last, None),
    };
    (file == ALONE || modules.contains_key(file)).then_some((file, line, column))
}
