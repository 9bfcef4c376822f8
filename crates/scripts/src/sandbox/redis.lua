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
        if type(part) == 'string' or type(part) == 'number' then
            parts[#parts + 1] = tostring(part)
        end
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

