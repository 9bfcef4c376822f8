-- The sandbox that scripts run in. It is given the functions in Rust, and gives those by which
-- scripts are run. Nothing here is reached by a script but through what `globals` has.
--
-- Tables that all scripts share are behind empty ones, of which nothing is changed: what a script
-- leaves behind would be there for the next one.

local native = ...

local error, type, tostring, tonumber, select, next, rawget, rawset =
    error, type, tostring, tonumber, select, next, rawget, rawset
local setmetatable, getmetatable, pcall, xpcall, unpack = setmetatable, getmetatable, pcall, xpcall, unpack
local setfenv, getfenv, loadstring, collectgarbage = setfenv, getfenv, loadstring, collectgarbage
local string, table, math, coroutine = string, table, math, coroutine
local byte, sub, concat, floor = string.byte, string.sub, table.concat, math.floor
local min, max = math.min, math.max
local is_stopped = native.is_stopped

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

originals.xpcall = function(f, handler)
    return caught_as_is(xpcall(f, handler))
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
    if byte(text, 1) == 27 then return nil, 'attempt to load code that is compiled already' end
    if name == nil then return loadstring(text) end
    return loadstring(text, name)
end

originals.loadstring = function(text, name)
    return load_text(check_string(text, 1, 'loadstring'), name and check_string(name, 2, 'loadstring'))
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
    if option == nil or option == 'collect' or option == 'step' then return collectgarbage('collect') end
    return 0
end

-- Coroutines -------------------------------------------------------------------------------------

local COROUTINES_MAX = 16
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
    local thread = create(f)
    return function(...)
        enter()
        return wrapped(resumed(resume(thread, ...)))
    end
end

-- Strings ----------------------------------------------------------------------------------------

local search, find_plain, replace = native.search, native.find_plain, native.replace

-- The place that `init` names in a string, counted from 0.
local function beginning(text, init, name)
    if init == nil then return 0 end
    init = check_whole(init, 3, name)
    if init < 0 then init = #text + init + 1 end
    if init < 1 then init = 1 end
    if init > #text + 1 then init = #text + 1 end
    return init - 1
end

local function captures(found, text)
    if found.n == 0 then return sub(text, found.from, found.to) end
    return unpack(found, 1, found.n)
end

local function anchor(pattern)
    if byte(pattern, 1) == 94 then return true, sub(pattern, 2) end
    return false, pattern
end

local SPECIAL = '[%^%$%*%+%?%.%(%[%%%-]'

string.find = function(text, pattern, init, plain)
    text, pattern = check_string(text, 1, 'find'), check_string(pattern, 2, 'find')
    local from = beginning(text, init, 'find')
    if plain or not finish(search(pattern, SPECIAL, 0, false)) then
        local at = find_plain(text, pattern, from)
        if not at then return nil end
        return at, at + #pattern - 1
    end
    local anchored, rest = anchor(pattern)
    local found = finish(search(text, rest, from, anchored))
    if not found then return nil end
    if found.n == 0 then return found.from, found.to end
    return found.from, found.to, unpack(found, 1, found.n)
end

string.match = function(text, pattern, init)
    text, pattern = check_string(text, 1, 'match'), check_string(pattern, 2, 'match')
    local anchored, rest = anchor(pattern)
    local found = finish(search(text, rest, beginning(text, init, 'match'), anchored))
    if not found then return nil end
    return captures(found, text)
end

string.gmatch = function(text, pattern)
    text, pattern = check_string(text, 1, 'gmatch'), check_string(pattern, 2, 'gmatch')
    local from = 0
    return function()
        if from > #text then return nil end
        local found = finish(search(text, pattern, from, false))
        if not found then
            from = #text + 1
            return nil
        end
        from = found.to
        if found.to < found.from then from = from + 1 end
        return captures(found, text)
    end
end
string.gfind = string.gmatch

local function replacement(value, match)
    if not value then return match end
    if type(value) == 'string' then return value end
    if type(value) == 'number' then return tostring(value) end
    error('invalid replacement value (a ' .. type(value) .. ')', 3)
end

local function replace_each(text, pattern, by, most)
    local anchored, rest = anchor(pattern)
    local pieces, count, from, done = {}, 0, 0, 0
    while done < most do
        local found = finish(search(text, rest, from, anchored))
        if not found then break end
        done = done + 1
        local match = sub(text, found.from, found.to)
        local value
        if type(by) == 'table' then
            value = by[(captures(found, text))]
        else
            value = by(captures(found, text))
        end
        pieces[count + 1] = sub(text, from + 1, found.from - 1)
        pieces[count + 2] = replacement(value, match)
        count = count + 2
        from = found.to
        if found.to < found.from then
            if from >= #text then break end
            pieces[count + 1] = sub(text, from + 1, from + 1)
            count = count + 1
            from = from + 1
        end
        if anchored then break end
    end
    pieces[count + 1] = sub(text, from + 1)
    return concat(pieces), done
end

string.gsub = function(text, pattern, by, most)
    text, pattern = check_string(text, 1, 'gsub'), check_string(pattern, 2, 'gsub')
    most = most and check_number(most, 4, 'gsub') or #text + 1
    local kind = type(by)
    if kind == 'string' or kind == 'number' then
        local found = finish(replace(text, pattern, tostring(by), most))
        return found[1], found[2]
    end
    if kind ~= 'table' and kind ~= 'function' then
        bad_argument(3, 'gsub', 'string/function/table expected')
    end
    local replaced, count = replace_each(text, pattern, by, most)
    return replaced, count
end

string.rep = function(text, count)
    return (finish(native.repeat_text(check_string(text, 1, 'rep'), check_number(count, 2, 'rep'))))
end

local insert = table.insert
table.insert = function(own, ...)
    check_table(own, 1, 'insert')
    if behind[own] then error(READONLY, 2) end
    return insert(own, ...)
end

-- Numbers ----------------------------------------------------------------------------------------

-- Whether a script runs, and not the code of a library that is being loaded.
local runs = false

math.random = function(...)
    if not runs then error('math.random can only be called inside a script invocation', 2) end
    local share, count = native.random(), select('#', ...)
    if count == 0 then return share end
    local low, high = ...
    low = floor(check_number(low, 1, 'random'))
    if count == 1 then
        if low < 1 then bad_argument(1, 'random', 'interval is empty') end
        return floor(share * low) + 1
    end
    if count > 2 then error('wrong number of arguments', 2) end
    high = floor(check_number(high, 2, 'random'))
    if low > high then bad_argument(2, 'random', 'interval is empty') end
    return floor(share * (high - low + 1)) + low
end

math.randomseed = function(seed)
    if not runs then error('math.randomseed can only be called inside a script invocation', 2) end
    native.random_seed(check_number(seed, 1, 'randomseed'))
end

local bit = {}
for _, name in next, {'bnot', 'bswap', 'tobit'} do
    bit[name] = function(value)
        return native.bit_one(name, check_number(value, 1, name))
    end
end
for _, name in next, {'lshift', 'rshift', 'arshift', 'rol', 'ror'} do
    bit[name] = function(value, by)
        return native.bit_two(name, check_number(value, 1, name), check_number(by, 2, name))
    end
end
for _, name in next, {'band', 'bor', 'bxor'} do
    bit[name] = function(...)
        local result = native.bit_one('tobit', check_number((...), 1, name))
        for at = 2, select('#', ...) do
            result = native.bit_two(name, result, check_number((select(at, ...)), at, name))
        end
        return result
    end
end
bit.tohex = function(value, digits)
    return native.bit_hexadecimal(
        check_number(value, 1, 'tohex'), digits and check_number(digits, 2, 'tohex'))
end

-- JSON -------------------------------------------------------------------------------------------

local json
local function reset_json()
    json = {
        encode_max_depth = 1000, decode_max_depth = 1000, encode_number_precision = 14,
        encode_invalid_numbers = 0, decode_invalid_numbers = 1, encode_keep_buffer = 1,
        sparse_converts = false, sparse_ratio = 2, sparse_safe = 10,
    }
end

local cjson = {null = native.null, _NAME = 'cjson', _VERSION = '2.1.0'}

cjson.encode = function(...)
    if select('#', ...) ~= 1 then bad_argument(1, 'encode', 'expected 1 argument') end
    return (finish(native.json_encode((...), json)))
end

cjson.decode = function(...)
    if select('#', ...) ~= 1 then bad_argument(1, 'decode', 'expected 1 argument') end
    local text = check_string((...), 1, 'decode')
    return (finish(native.json_decode(text, json.decode_max_depth, json.decode_invalid_numbers == 1)))
end

local function setting_of_number(name, most)
    cjson[name] = function(value)
        if value ~= nil then
            local number = tonumber(value)
            if not number or number < 1 or number > most or number ~= floor(number) then
                bad_argument(1, name, 'expected integer between 1 and ' .. most)
            end
            json[name] = number
        end
        return json[name]
    end
end
setting_of_number('encode_max_depth', 2147483647)
setting_of_number('decode_max_depth', 2147483647)
setting_of_number('encode_number_precision', 14)

local function setting_of_choice(name, choices)
    cjson[name] = function(value)
        if value ~= nil then
            local choice = choices[value]
            if not choice then bad_argument(1, name, "invalid option '" .. tostring(value) .. "'") end
            json[name] = choice
        end
        if json[name] == 2 then return 'null' end
        return json[name] == 1
    end
end
setting_of_choice('encode_invalid_numbers', {[false] = 0, [true] = 1, off = 0, on = 1, null = 2})
setting_of_choice('decode_invalid_numbers', {[false] = 0, [true] = 1, off = 0, on = 1})
setting_of_choice('encode_keep_buffer', {[false] = 0, [true] = 1, off = 0, on = 1})

cjson.encode_sparse_array = function(converts, ratio, safe)
    if converts ~= nil then json.sparse_converts = converts == true or converts == 'on' end
    if ratio ~= nil then json.sparse_ratio = check_number(ratio, 2, 'encode_sparse_array') end
    if safe ~= nil then json.sparse_safe = check_number(safe, 3, 'encode_sparse_array') end
    return json.sparse_converts, json.sparse_ratio, json.sparse_safe
end

-- MessagePack and layouts ------------------------------------------------------------------------

local cmsgpack = {
    _NAME = 'cmsgpack', _VERSION = 'lua-cmsgpack 0.4.0', _DESCRIPTION = 'MessagePack for Lua',
}

cmsgpack.pack = function(...)
    local count = select('#', ...)
    if count == 0 then bad_argument(0, 'pack', 'MessagePack pack needs input.') end
    return (finish(native.message_pack({...}, count)))
end

local function unpack_message(text, most, from, name)
    text = check_string(text, 1, name)
    if from < 0 or most < 0 then
        error('Invalid request to unpack with offset of ' .. from .. ' and limit of ' .. #text .. '.', 3)
    elseif from > #text then
        error('Start offset ' .. from .. ' greater than input length ' .. #text .. '.', 3)
    end
    local fine, found = native.message_unpack(text, from, most)
    if not fine then error(found, 3) end
    return found
end

cmsgpack.unpack = function(text)
    local found = unpack_message(text, 0, 0, 'unpack')
    return unpack(found, 1, found.n)
end

cmsgpack.unpack_one = function(text, from)
    local found = unpack_message(text, 1, check_whole(from or 0, 2, 'unpack_one'), 'unpack_one')
    return found.at, unpack(found, 1, found.n)
end

cmsgpack.unpack_limit = function(text, most, from)
    most = check_whole(most, 2, 'unpack_limit')
    local found =
        unpack_message(text, most, check_whole(from or 0, 3, 'unpack_limit'), 'unpack_limit')
    return found.at, unpack(found, 1, found.n)
end

local struct = {}

struct.pack = function(layout, ...)
    return (finish(native.struct_pack(check_string(layout, 1, 'pack'), {...})))
end

struct.unpack = function(layout, text, from)
    layout, text = check_string(layout, 1, 'unpack'), check_string(text, 2, 'unpack')
    from = check_whole(from or 1, 3, 'unpack')
    if from < 1 then bad_argument(3, 'unpack', 'offset must be 1 or greater') end
    local fine, found = native.struct_unpack(layout, text, from - 1)
    if not fine then error(found, 2) end
    found[found.n + 1] = found.at
    return unpack(found, 1, found.n + 1)
end

struct.size = function(layout)
    return (finish(native.struct_size(check_string(layout, 1, 'size'))))
end

-- `redis` ----------------------------------------------------------------------------------------

local function raise(why)
    error({err = 'ERR ' .. why})
end

local function call(...)
    if not runs then raise('redis.call/pcall can only be called inside a script invocation') end
    return native.call({...}, select('#', ...))
end

local function of_text(f)
    return function(...)
        if select('#', ...) ~= 1 or type((...)) ~= 'string' then
            return {err = 'ERR wrong number or type of arguments'}
        end
        return f((...))
    end
end

local function log(level, ...)
    if select('#', ...) < 1 then raise('redis.log() requires two arguments or more.') end
    local number = tonumber(level)
    if not number then raise('First argument must be a number (log level).') end
    if number < 0 or number > 3 then raise('Invalid debug level.') end
    local parts = {}
    for at = 1, select('#', ...) do
        local part = select(at, ...)
        if type(part) == 'string' or type(part) == 'number' then parts[#parts + 1] = tostring(part) end
    end
    native.log(number, concat(parts, ' '))
end

local redis = {
    REDIS_VERSION = native.version, REDIS_VERSION_NUM = native.version_number,
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
    log = log,
}

redis.call = function(...)
    local fine, value = call(...)
    if fine then return value end
    error(value)
end

redis.pcall = function(...)
    local _, value = call(...)
    return value
end

redis.sha1hex = function(...)
    if select('#', ...) ~= 1 then raise('wrong number of arguments') end
    local text = ...
    if type(text) ~= 'string' and type(text) ~= 'number' then text = '' end
    return native.sha1hex(tostring(text))
end

redis.error_reply = of_text(function(text)
    if byte(text, 1) == 45 then text = sub(text, 2) end
    if not find_plain(text, ' ', 0) then text = 'ERR ' .. text end
    return {err = text}
end)

redis.status_reply = of_text(function(text)
    return {ok = text}
end)

redis.setresp = function(...)
    if not runs then raise('redis.setresp can only be called inside a script invocation') end
    if select('#', ...) ~= 1 then raise('redis.setresp() requires one argument.') end
    local version = tonumber((...))
    if version ~= 2 and version ~= 3 then raise('RESP version must be 2 or 3.') end
    native.set_version(version)
end

redis.set_repl = function(...)
    if not runs then raise('redis.set_repl can only be called inside a script invocation') end
    if select('#', ...) ~= 1 then raise('redis.set_repl() requires two arguments.') end
    local flags = tonumber((...)) or 0
    if flags < 0 or flags > 3 then
        raise('Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.')
    end
end

redis.acl_check_cmd = function(...)
    if not runs then raise('redis.acl_check_cmd can only be called inside a script invocation') end
    local fine, value = native.check({...}, select('#', ...))
    if not fine then error(value) end
    return value
end

-- Scripts alone have these, and functions do not.
local script_functions = {
    replicate_commands = function() return true end,
    breakpoint = function() return false end,
    debug = function() end,
}

-- Libraries --------------------------------------------------------------------------------------

local library_redis = {
    log = log, REDIS_VERSION = redis.REDIS_VERSION, REDIS_VERSION_NUM = redis.REDIS_VERSION_NUM,
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
}

library_redis.register_function = function(...)
    local count = select('#', ...)
    if not native.is_loading() then
        raise('redis.register_function can only be called on FUNCTION LOAD command')
    elseif count < 1 or count > 2 then
        raise('wrong number of arguments to redis.register_function')
    end
    local first, second = ...
    if count == 1 and type(first) ~= 'table' then
        raise('calling redis.register_function with a single argument is only applicable to Lua ' ..
            'table (representing named arguments).')
    end
    local fine, why
    if count == 1 then
        fine, why = native.register_named(behind[first] or first)
    elseif type(first) ~= 'string' and type(first) ~= 'number' then
        raise('first argument to redis.register_function must be a string')
    elseif type(second) ~= 'function' then
        raise('second argument to redis.register_function must be a function')
    else
        fine, why = native.register(tostring(first), second)
    end
    if not fine then raise(why) end
end
setmetatable(library_redis, {__index = missing})

local library_globals = setmetatable({redis = frozen(library_redis)}, {__index = missing})

-- What functions of libraries have as their global table: while a library is loaded there is little
-- in it.
local function_globals = {}
local function_globals_metatable = {__index = originals, __newindex = readonly}
setmetatable(function_globals, function_globals_metatable)

-- What scripts see -------------------------------------------------------------------------------

local api = {
    string = string, table = table, math = math, coroutine = coroutine, bit = bit, cjson = cjson,
    cmsgpack = cmsgpack, struct = struct, redis = redis,
}
cjson.new = function() return originals.cjson end
for name, own in next, api do
    for _, value in next, own do
        if type(value) == 'function' then own_functions[value] = true end
    end
    originals[name] = frozen(own)
end
for _, value in next, originals do
    if type(value) == 'function' then own_functions[value] = true end
end
own_functions[library_redis.register_function] = true
for _, value in next, script_functions do own_functions[value] = true end
originals._G = globals
setmetatable(originals, {__index = missing})
setmetatable(globals, {__index = originals, __newindex = readonly})
behind[globals], behind[function_globals] = originals, originals

-- An error, with the place in the script where it was raised.
local function located(why)
    if type(why) ~= 'table' then
        why = {err = 'ERR ' .. tostring(why)}
    end
    local source, line = native.location()
    return {err = rawget(why, 'err'), source = source, line = line}
end

local function begin()
    reset_json()
    depth = 0
end

local entry = {globals = globals, function_globals = function_globals}

-- Runs a script; whether it was fine, and what it gives.
entry.run_script = function(f, keys, args)
    begin()
    for name, value in next, script_functions do rawset(redis, name, value) end
    rawset(originals, 'KEYS', keys)
    rawset(originals, 'ARGV', args)
    runs = true
    local fine, value = xpcall(f, located)
    runs = false
    for name in next, script_functions do rawset(redis, name, nil) end
    rawset(originals, 'KEYS', nil)
    rawset(originals, 'ARGV', nil)
    return fine, value
end

-- Runs a function of a library.
entry.run_function = function(f, keys, args)
    begin()
    runs = true
    local fine, value = xpcall(function() return f(keys, args) end, located)
    runs = false
    return fine, value
end

-- Runs the code of a library, which registers its functions.
entry.load_library = function(f)
    begin()
    rawset(function_globals_metatable, '__index', library_globals)
    local fine, value = xpcall(f, located)
    rawset(function_globals_metatable, '__index', originals)
    return fine, value
end

return entry
