-- The sandbox that scripts run in. It is given the functions in Rust, and gives those by which
-- scripts are run. Nothing here is reached by a script but through what `globals` has.
--
-- Tables that all scripts share are behind empty ones, of which nothing is changed: what a script
-- leaves behind would be there for the next one.

local native = ...

local error, type, tostring, tonumber, select, next, rawget, rawset =
    error, type, tostring, tonumber, select, next, rawget, rawset
local setmetatable, getmetatable, pcall, xpcall, unpack =
    setmetatable, getmetatable, pcall, xpcall, unpack
local setfenv, getfenv, loadstring, collectgarbage = setfenv, getfenv, loadstring, collectgarbage
local string, table, math, coroutine = string, table, math, coroutine
local byte, sub, concat, floor = string.byte, string.sub, table.concat, math.floor
local min, max = math.min, math.max
local is_stopped, charge, charge_bytes = native.is_stopped, native.charge, native.charge_bytes

-- What scripts have as their global table.
local globals = {}
local originals = {
    assert = assert, error = error, gcinfo = gcinfo, ipairs = ipairs, rawequal = rawequal,
    select = select, tonumber = tonumber, tostring = tostring, type = type, unpack = unpack,
    _VERSION = _VERSION,
}
setfenv(1, globals)

-- The tables behind the empty ones.
local behind = {}

local READONLY = 'Attempt to modify a readonly table'

local function readonly()
    error(READONLY, 2)
end

local function missing(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

local function frozen(own)
    local front = {}
    behind[front] = own
    return setmetatable(front, {__index = own, __newindex = readonly})
end

local function bad_argument(at, name, why, level)
    error('bad argument #' .. at .. " to '" .. name .. "' (" .. why .. ')', (level or 2) + 1)
end

local function got(value)
    if value == nil then return 'no value' end
    return type(value)
end

local function check_table(value, at, name)
    if type(value) ~= 'table' then
        bad_argument(at, name, 'table expected, got ' .. got(value), 3)
    end
end

local function check_string(value, at, name)
    if type(value) == 'string' then return value end
    if type(value) == 'number' then return tostring(value) end
    bad_argument(at, name, 'string expected, got ' .. got(value), 3)
end

local function check_number(value, at, name)
    local number = tonumber(value)
    if not number then
        bad_argument(at, name, 'number expected, got ' .. got(value), 3)
    end
    return number
end

-- A whole number, and none that is too large to be a position.
local function check_whole(value, at, name)
    local number = tonumber(value)
    if not number then
        bad_argument(at, name, 'number expected, got ' .. got(value), 3)
    end
    if number ~= number then return 0 end
    return floor(min(max(number, -4503599627370496), 4503599627370496))
end

-- What a function in Rust gives: whether it was fine, and what it found, or why it was not.
local function finish(fine, value)
    if fine then return value end
    error(value, 3)
end

-- Errors -----------------------------------------------------------------------------------------

-- A run that is to stop cannot catch that.
local function stop_if_stopped()
    if is_stopped() then error('stopped', 0) end
end

local function caught(fine, ...)
    if fine then return true, ... end
    stop_if_stopped()
    local why = ...
    if type(why) == 'table' then
        local text = rawget(why, 'err')
        if type(text) == 'string' then return false, text end
    elseif type(why) == 'userdata' then
        return false, tostring(why)
    end
    return false, why
end

originals.pcall = function(f, ...)
    return caught(pcall(f, ...))
end

local function caught_as_is(fine, ...)
    if not fine then stop_if_stopped() end
    return fine, ...
end

-- The error of a run that is to stop is raised where no instructions are counted: the handler of a
-- script is not called then.
originals.xpcall = function(f, handler)
    return caught_as_is(xpcall(f, function(why)
        if is_stopped() then return why end
        return handler(why)
    end))
end

-- Tables -----------------------------------------------------------------------------------------

originals.next = function(own, key)
    check_table(own, 1, 'next')
    return next(behind[own] or own, key)
end

originals.pairs = function(own)
    check_table(own, 1, 'pairs')
    local real = behind[own]
    if not real then return next, own, nil end
    return function(_, key) return next(real, key) end, own, nil
end

originals.rawget = function(own, key)
    check_table(own, 1, 'rawget')
    return rawget(behind[own] or own, key)
end

originals.rawset = function(own, key, value)
    check_table(own, 1, 'rawset')
    if behind[own] then error(READONLY, 2) end
    return rawset(own, key, value)
end

local globals_metatable = frozen({__index = missing})
local strings_metatable = frozen({__index = frozen(string)})

originals.getmetatable = function(own)
    if type(own) == 'string' then return strings_metatable end
    if type(own) ~= 'table' then return nil end
    if own == globals then return globals_metatable end
    if behind[own] then return nil end
    return getmetatable(own)
end

originals.setmetatable = function(own, metatable)
    check_table(own, 1, 'setmetatable')
    if behind[own] then error(READONLY, 2) end
    return setmetatable(own, metatable)
end

-- Environments and code --------------------------------------------------------------------------

-- Functions of the sandbox, whose environment nobody changes.
local own_functions = {}

originals.getfenv = function(of)
    if of == nil then of = 1 end
    if type(of) == 'function' then return getfenv(of) end
    local level = check_number(of, 1, 'getfenv')
    if level == 0 then return globals end
    local environment = getfenv(level + 1)
    return environment
end

originals.setfenv = function(of, environment)
    check_table(environment, 2, 'setfenv')
    if type(of) == 'function' then
        if own_functions[of] then
            error("'setfenv' cannot change environment of given object", 2)
        end
        return setfenv(of, environment)
    end
    if check_number(of, 1, 'setfenv') ~= 1 then
        error("'setfenv' cannot change environment of given object", 2)
    end
    local changed = setfenv(2, environment)
    return changed
end

local function load_text(text, name)
    charge(#text)
    if byte(text, 1) == 27 then return nil, 'attempt to load code that is compiled already' end
    if name == nil then return loadstring(text) end
    return loadstring(text, name)
end

originals.loadstring = function(text, name)
    name = name and check_string(name, 2, 'loadstring')
    return load_text(check_string(text, 1, 'loadstring'), name)
end

originals.load = function(reader, name)
    local pieces, count = {}, 0
    while true do
        local piece = reader()
        if piece == nil or piece == '' then break end
        if type(piece) ~= 'string' then return nil, 'reader function must return a string' end
        count = count + 1
        pieces[count] = piece
    end
    return load_text(concat(pieces), name and check_string(name, 2, 'load') or '=(load)')
end

originals.collectgarbage = function(option)
    if option == 'count' then return collectgarbage('count') end
    if option == nil or option == 'collect' or option == 'step' then
        local left = collectgarbage('collect')
        native.collected()
        return left
    end
    return 0
end

-- Coroutines -------------------------------------------------------------------------------------

local COROUTINES_MAX = 16
-- A coroutine may run for so many instructions before they are counted.
local COROUTINE_COST = 500
local resume, create = coroutine.resume, coroutine.create
-- How many are within each other.
local depth = 0

local function resumed(fine, ...)
    depth = depth - 1
    if not fine then stop_if_stopped() end
    return fine, ...
end

local function enter()
    if depth == COROUTINES_MAX then error('C stack overflow', 3) end
    depth = depth + 1
end

coroutine.create = function(f)
    if type(f) ~= 'function' then bad_argument(1, 'create', 'Lua function expected') end
    charge(COROUTINE_COST)
    return create(f)
end

coroutine.resume = function(thread, ...)
    if type(thread) ~= 'thread' then bad_argument(1, 'resume', 'coroutine expected') end
    enter()
    return resumed(resume(thread, ...))
end

local function wrapped(fine, ...)
    if fine then return ... end
    local why = ...
    error(why, 0)
end

coroutine.wrap = function(f)
    if type(f) ~= 'function' then bad_argument(1, 'wrap', 'Lua function expected') end
    charge(COROUTINE_COST)
    local thread = create(f)
    return function(...)
        enter()
        return wrapped(resumed(resume(thread, ...)))
    end
end

